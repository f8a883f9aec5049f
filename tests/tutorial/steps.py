#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does what a text in Markdown says, in the current folder. Its fenced blocks are steps:

  ```sh          is run by bash, in the folder where the last one ended; `sh exit=1`: it must end with that code
  ```text        right behind it: what it prints. `...` in a line is any text; a line `...` is any number of lines
  ```diff        changes the file that it names; @@ stands between places, each of which must be found exactly once
  ```<lang> file=PATH   is the whole of a file

Other blocks are not touched. Prints every step; the last line is `N passed, N failed`.
"""

import os
import pathlib
import re
import subprocess
import sys


class Wrong(Exception):
    """A step that does not do what the text says."""


def blocks(text):
    """(line, info string, body) of every fenced block, and whether it stands right behind the one before."""
    lines = text.splitlines()
    found, at, last_end = [], 0, -2
    while at < len(lines):
        if not lines[at].startswith("```"):
            at += 1
            continue
        end = lines.index("```", at + 1)
        found.append((at + 1, lines[at][3:].strip(), "\n".join(lines[at + 1:end]) + "\n", at == last_end + 1))
        last_end, at = end, end + 1
    return found


def pattern_of(expected):
    pattern = ""
    for line in expected.splitlines():
        if line == "...":
            pattern += r"(?:.*\n)*?"
        else:
            # columns may be wider where names are longer
            parts = [re.sub(r"(\\ ){2,}", r" +", re.escape(part)) for part in line.split("...")]
            pattern += ".*?".join(parts) + r" *\n"
    return pattern


def run(body, expected, code):
    place = pathlib.Path(os.environ["TMPDIR"] if "TMPDIR" in os.environ else "/tmp") / f"trellis-tutorial-{os.getpid()}"
    # no -e: the exit code is that of the last command
    done = subprocess.run(["bash", "-o", "pipefail", "-c", f'trap \'pwd >"{place}"\' EXIT\n{body}'], text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    print(done.stdout, end="")
    os.chdir(place.read_text(encoding="utf-8").rstrip("\n"))
    place.unlink()
    if done.returncode != code:
        raise Wrong(f"ended with exit code {done.returncode} (needed {code})")
    if expected is not None and not re.fullmatch(pattern_of(expected), done.stdout):
        raise Wrong(f"printed something else than the text shows:\n{expected}")


def change(body):
    lines = body.splitlines()
    name = lines[1].removeprefix("+++ ").strip()
    path = pathlib.Path(name)
    text = path.read_text(encoding="utf-8")
    for place in "\n".join(lines[2:]).split("@@\n")[1:]:
        place = [line for line in place.splitlines() if line]
        old = "".join(line[1:] + "\n" for line in place if line[0] in " -")
        new = "".join(line[1:] + "\n" for line in place if line[0] in " +")
        if text.count(old) != 1:
            raise Wrong(f"these lines are {text.count(old)} times in {name} (needed once):\n{old}")
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    print(f"changed {name}")


def steps(text):
    """(line, what it is, function) of every step."""
    found = blocks(text)
    for i, (line, info, body, _) in enumerate(found):
        words = info.split()
        options = dict(word.split("=", 1) for word in words[1:])
        if words[:1] == ["sh"]:
            follows = i + 1 < len(found) and found[i + 1][1] == "text" and found[i + 1][3]
            expected = found[i + 1][2] if follows else None
            yield line, "$ " + body.rstrip("\n").replace("\n", "\n$ "), \
                lambda b=body, e=expected, c=int(options.get("exit", 0)): run(b, e, c)
        elif words[:1] == ["diff"]:
            yield line, "change\n" + body.rstrip("\n"), lambda b=body: change(b)
        elif "file" in options:
            yield line, f"write {options['file']}", \
                lambda b=body, p=options["file"]: pathlib.Path(p).write_text(b, encoding="utf-8")


def main(path):
    passed = failed = 0
    for line, what, act in steps(pathlib.Path(path).read_text(encoding="utf-8")):
        print(f"\n=== line {line}\n{what}", flush=True)
        try:
            act()
            passed += 1
        except (Wrong, OSError, ValueError) as error:
            failed += 1
            print(f"FAILED at line {line} of {path}: {error}")
    print(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
