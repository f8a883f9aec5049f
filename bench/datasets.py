# SPDX-License-Identifier: Apache-2.0
"""Makes the folder that the task programs read out of what the repository ships.

text/test.txt   train: WikiText-2's test part, a sentence a line, words seen once there as <unk>
text/dev.txt    first half of its validation part
tags/dev.txt    English Web Treebank's dev part, word|TAG; the first 1,500 sentences train
trees/          ListOps expressions, generated with a fixed seed

The names are those of the folder that the peers' published figures were made with.
"""

import collections
import gzip
import pathlib

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"


def lines(name):
    with gzip.open(DATA / name, "rt", encoding="utf-8") as file:
        return file.read().split("\n")


def sentences(paragraphs):
    """Paragraphs cut after full stops, as news text comes: chains of paragraphs are ten times as long."""
    for paragraph in paragraphs:
        sentence = []
        for word in paragraph.split():
            sentence.append(word)
            if word in (".", "?", "!"):
                yield " ".join(sentence)
                sentence = []
        if sentence:
            yield " ".join(sentence)


def without_rare(texts):
    texts = list(texts)
    counts = collections.Counter(word for text in texts for word in text.split())
    return (" ".join(w if counts[w] > 1 else "<unk>" for w in text.split()) for text in texts)


def tagged(conllu):
    sentence = []
    for line in [*conllu, ""]:
        fields = line.split("\t")
        if not line and sentence:
            yield " ".join(sentence)
            sentence = []
        elif len(fields) > 3 and fields[0].isdigit():
            sentence.append(fields[1].replace(" ", "_") + "|" + fields[3])


class Random:
    """A 64-bit linear congruential generator: the same numbers everywhere, whatever Python's own module does."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) * n >> 31


OPERATORS = {
    "MAX": max,
    "MIN": min,
    "MED": lambda values: sorted(values)[len(values) // 2],
    "SUM": lambda values: sum(values) % 10,
}


def listops(random, depth, root=True):
    """A tree as (text, value). An operator takes its arguments one after another, so that every node is binary and has
    the value of what stands below it: ((([MAX 2) 9) 4). A bare operator counts as 0."""
    if depth == 0 or not root and random.below(100) < 70:
        value = random.below(10)
        return f"({value} {value})", value
    name = list(OPERATORS)[random.below(len(OPERATORS))]
    text, values, value = f"(0 [{name})", [], 0
    for _ in range(2 + random.below(4)):
        argument, v = listops(random, depth - 1, False)
        values.append(v)
        value = OPERATORS[name](values)
        text = f"({value} {text} {argument})"
    return text, value


def write(path, items):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(item + "\n" for item in items), encoding="utf-8")


def make(folder):
    done = folder / "done-1"  # another number for another recipe
    if done.exists():
        return
    valid = lines("wikitext2/valid.txt.gz")
    write(folder / "text/test.txt", without_rare(sentences(lines("wikitext2/test.txt.gz"))))
    write(folder / "text/dev.txt", sentences(valid[: len(valid) // 2]))
    write(folder / "tags/dev.txt", tagged(lines("ewt/en_ewt-ud-dev.conllu.gz")))
    random = Random(7)
    for part, n in (("train", 8000), ("dev", 1000)):
        write(folder / f"trees/{part}.txt", (listops(random, 4)[0] for _ in range(n)))
    done.touch()
