#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the results of the last `meson test` in a build folder: prints `N passed, N failed`.

Exits with 1 when a test failed, or when none ran, as after a failed build.
"""

import glob
import json
import sys


def main(folder):
    results = []
    for path in glob.glob(f"{folder}/meson-logs/testlog*.json"):
        with open(path, encoding="utf-8") as log:
            results += [(entry["name"], entry["result"]) for entry in map(json.loads, log)]

    for name, result in results:
        if result == "SKIP":
            print(f"skipped: {name}")
    passed = sum(result in ("OK", "EXPECTEDFAIL") for _, result in results)
    failed = sum(result not in ("OK", "EXPECTEDFAIL", "SKIP") for _, result in results)
    if not results:
        failed = 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
