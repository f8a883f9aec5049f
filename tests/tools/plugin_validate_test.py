#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trellis plugin validate: selection, reports, exit codes, what a crash costs. argv[2]: a plugin that crashes."""

import pathlib
import re
import sys
import xml.etree.ElementTree as xml

from command import CommandTest, main, trellis

CRASH = pathlib.Path(sys.argv[2])


def validate(*args, **keys):
    return trellis("plugin", "validate", *args, **keys)


class Selection(CommandTest):
    def test_list(self):
        tests = validate("--list", "--json").json()
        names = {t["test"] for t in tests}
        self.assertLessEqual({"static.tables", "load.entry", "shape.refuse", "forward.writes", "gradient.difference",
                              "batch.merged", "threads.same", "faults.scratch", "leaks.cycles", "cost.allocations"}, names)
        self.assertEqual([t["level"] for t in tests], sorted(t["level"] for t in tests))
        self.assertTrue(all(t["contract"] for t in tests))
        text = validate("--list").out
        self.assertRegex(text.splitlines()[0], r"^LEVEL +TEST +OF +CONTRACT$")
        self.assertEqual(len(text.splitlines()), len(tests) + 1)

    def test_level_op_and_test(self):
        report = validate("ops-core", "--level", 4, "--op", "core.tan*", "--test", "forward.[rw]*", "--json").json()[0]
        self.assertEqual([(t["subject"], t["test"]) for t in report["tests"]],
                         [(s, t) for s in ("core.tanh", "core.tan") for t in ("forward.writes", "forward.repeat")])
        self.assertEqual({t["level"] for t in report["tests"]}, {4})
        self.assert_refused(validate("ops-core", "--level", 3, "--op", "core.tanh", "--test", "forward.*"), 2,
                            "[validate] 'forward.*' is of level 4: --level 3 leaves it out")

    def test_what_is_wrong_with_the_command_line(self):
        self.assert_refused(validate(), 2, "[validate] no plugin given (needs an id or a file)")
        self.assert_refused(validate("ops-core", "--test", "nothing.*"), 2,
                            "[validate] no test is named 'nothing.*' (see --list)")
        self.assert_refused(validate("ops-core", "--test", "gradient.add", "--level", "3"), 2,
                            "[validate] 'gradient.add' is of level 5: --level 3 leaves it out")
        self.assert_refused(validate("ops-core", "--op", "core.nothing", "--test", "forward.writes"), 2,
                            "[validate] ops-core provides nothing named 'core.nothing'")
        for words in (["--level", "11"], ["--level", "0"], ["--time-limit", "0"], ["--jobs", "0"], ["--seed", "x"],
                      ["--seed", "-1"], ["--seed", "99999999999999999999"], ["--time-limit", "nan"]):
            self.assertEqual(validate("ops-core", *words).code, 2)
        nowhere = self.folder / "nowhere" / "report.xml"
        failed = validate("trainers", "--test", "load.entry", "--junit", nowhere)
        self.assertEqual((failed.code, failed.err), (1, f"trellis: [validate] cannot write '{nowhere}'\n"))


class Reports(CommandTest):
    def test_text(self):
        result = validate("ops-core", "--op", "core.tanh", "--test", "gradient.*", "--level", 5)
        lines = result.out.splitlines()
        self.assertRegex(lines[0], r"^ops-core \S+: level 5, seed 1$")
        self.assertRegex(lines[1], r"^core\.tanh +operator +\d+ passed, \d+ skipped$")
        self.assertIn("  skipped gradient.unwanted: at most one input takes a gradient", lines)
        self.assertRegex(lines[-1], r"^\d+ passed, 0 failed, \d+ skipped in \d+\.\d s$")
        self.assertEqual((result.code, result.err), (0, ""))

    def test_json_and_junit_say_the_same(self):
        file = self.folder / "report.xml"
        report = validate("ops-core", "--op", "core.tanh", "--test", "forward.*", "--json", "--junit", file).json()[0]
        suite = xml.parse(file).getroot().find("testsuite")
        self.assertEqual(int(suite.get("tests")), len(report["tests"]))
        self.assertEqual([(c.get("classname"), c.get("name")) for c in suite], [(t["subject"], t["test"]) for t in report["tests"]])
        self.assertEqual((report["passed"], report["failed"]), (len(report["tests"]), 0))
        self.assertEqual({t["state"] for t in report["tests"]}, {"passed"})

    def test_in_process_and_jobs_give_the_same(self):
        def states(*words):
            report = validate("ops-core", "--op", "core.s[iq]*", "--level", 5, "--test", "[fg]*", "--json", *words).json()[0]
            return [(t["test"], t["subject"], t["state"], t["text"]) for t in report["tests"]]
        self.assertEqual(states("--in-process"), states("--jobs", 4))


class Crashes(CommandTest):
    def test_a_healthy_one(self):
        result = validate(CRASH, "--level", 2, "--test", "load.*")
        self.assertEqual((result.code, result.err), (0, ""), result.out)

    def test_the_report_survives(self):
        for how, signal in (("abort", "SIGABRT"), ("read", "SIGSEGV")):
            result = validate(CRASH, "--level", 2, "--test", "load.*", "--json", env={"CRASH_PLUGIN": how})
            self.assertEqual(result.code, 5)
            tests = {t["test"]: t for t in result.json()[0]["tests"]}
            self.assertEqual(tests["load.entry"]["state"], "passed")
            init = tests["load.init"]
            self.assertEqual((init["state"], init["crashed"]), ("failed", True))
            self.assertIn(f"crashed: {signal}", init["text"])
        self.assertIn("reading through a null pointer", init["text"])

    def test_how_to_see_it_again(self):
        result = validate(CRASH, "--level", 2, "--test", "load.init", "--seed", 7, env={"CRASH_PLUGIN": "abort"})
        line = re.search(r"reproduce: trellis (.*)", result.out)
        self.assertEqual(line.group(1), f"plugin validate {CRASH} --test load.init --seed 7")
        self.assertEqual(trellis(*line.group(1).split(), env={"CRASH_PLUGIN": "abort"}).code, 5)
        junit = self.folder / "report.xml"
        validate(CRASH, "--level", 2, "--test", "load.init", "--junit", junit, env={"CRASH_PLUGIN": "abort"})
        failure = xml.parse(junit).getroot().find("testsuite/testcase/failure")
        self.assertIn("crashed: SIGABRT", failure.get("message"))


main()
