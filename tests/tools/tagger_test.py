#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trellis train tagger, trellis predict tagger."""

import gzip
import json
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess

from command import TRELLIS, CommandTest, main, trellis

SENTENCES = ["I|PRON saw|VERB the|DET saw|NOUN", "the|DET saw|NOUN saw|VERB you|PRON", "you|PRON ran|VERB"]
SMALL = ["--embedding", 8, "--hidden", 8, "--mlp", 8, "--dropout", 0, "--lr", 0.02, "--epochs", 12]


def conllu(sentence):
    rows = [token.rsplit("|", 1) for token in sentence.split()]
    lines = [f"{i}\t{word}\t_\t{tag}\t_\t_\t0\troot\t_\t_" for i, (word, tag) in enumerate(rows, 1)]
    return "# a comment\n" + "\n".join(lines) + "\n\n"


class TaggerTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.corpus = self.write("corpus.txt", "\n".join(SENTENCES * 20) + "\n")
        self.model = self.folder / "model.safetensors"

    def train(self, *args, **more):
        return trellis("train", "tagger", "--train", self.corpus, "--dev", self.corpus, "--out", self.model, *SMALL,
                       *args, **more)

    def predict(self, text, **more):
        return trellis("predict", "tagger", "--model", self.model, stdin=text, **more)

    def change_metadata(self, change):
        """Rewrites the description inside the model file; the numbers stay."""
        data = self.model.read_bytes()
        (length,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8:8 + length])
        change(header["__metadata__"])
        text = json.dumps(header).encode()
        self.model.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length:])

    def change_config(self, **entries):
        def change(metadata):
            metadata["trellis.tagger"] = json.dumps({**json.loads(metadata["trellis.tagger"]), **entries})

        self.change_metadata(change)


class Train(TaggerTest):
    def test_learns_and_tags(self):
        result = self.train("--test", self.corpus)
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertEqual(len(re.findall(r"(?m)^epoch +\d+: loss \S+ a word, \d+ words/s, \S+ s, dev accuracy", result.out)),
                         12)
        self.assertIn("60 sentences, 200 words, 5 types, 4 tags", result.out)
        self.assertIn("0.00 % <unk>", result.out)
        self.assertTrue(result.out.endswith("test accuracy 100.00 %\ndev accuracy 100.00 %\n"), result.out)
        tagged = self.predict("I saw the saw\n\nthe  saw\tsaw you\r\n")
        self.assertEqual((tagged.out, tagged.err, tagged.code),
                         ("I|PRON saw|VERB the|DET saw|NOUN\n\nthe|DET saw|NOUN saw|VERB you|PRON\n", "", 0))

    def test_quiet_leaves_only_results(self):
        self.assertEqual(self.train("--quiet").out, "dev accuracy 100.00 %\n")

    def test_same_seed_same_bits(self):
        self.train("--epochs", 2, "--dropout", 0.3)
        first = self.model.read_bytes()
        self.train("--epochs", 2, "--dropout", 0.3)
        self.assertEqual(self.model.read_bytes(), first)
        self.train("--epochs", 2, "--dropout", 0.3, "--seed", 2)
        self.assertNotEqual(self.model.read_bytes(), first)

    def test_conllu_and_gzip(self):
        text = "".join(map(conllu, SENTENCES)) * 20
        self.corpus = self.folder / "corpus.gz"
        self.corpus.write_bytes(gzip.compress(text.encode()))
        self.assertTrue(self.train().out.endswith("dev accuracy 100.00 %\n"))
        self.assert_refused(self.train("--format", "word-tag", "--quiet"), 1,
                            f"[read_tagged] {self.corpus}:1: the token is '#' (needed word|tag)")

    def test_words_and_tags_that_training_never_saw(self):
        dev = self.write("dev.txt", "I|PRON saw|VERB Martians|NOUN oh|INTJ\n")
        result = self.train("--dev", dev)
        self.assertIn("4 words, 50.00 % <unk>", result.out)
        accuracy = float(re.search(r"dev accuracy (\S+) %\n$", result.out)[1])
        self.assertLessEqual(accuracy, 75)  # INTJ cannot be right

    def test_other_builders_trainers_and_sizes(self):
        for options in (["--builder", "gru"], ["--trainer", "sgd", "--lr", 0.1], ["--activation", "relu"],
                        ["--layers", 2], ["--minibatch", 1], ["--threshold", 2], ["--clip", 0],
                        ["--attr", "forget_bias=0.5", "--attr", "trainer.beta1=0.8"]):
            with self.subTest(options):
                result = self.train("--epochs", 2, *options)
                self.assertEqual((result.code, result.err), (0, ""))
                self.assertEqual(self.predict("I saw you\n").out.count("|"), 3)

    def test_without_dev_the_last_epoch_is_saved(self):
        result = trellis("train", "tagger", "--train", self.corpus, "--out", self.model, *SMALL)
        self.assertTrue(result.out.endswith(f"saved {self.model}\n"), result.out)
        self.assertNotIn("dev", result.out)
        self.assertEqual(self.predict("I saw you\n").code, 0)

    def test_refusals(self):
        one = self.train("--attr", "forget_bias")
        self.assertEqual((one.code, one.err),
                         (2, "trellis: [train tagger] --attr 'forget_bias' has no value (needed key=value)\n"))
        for attr, fact in (("colour=1", r"no attribute 'colour' \(core.adam has lr, beta1, beta2, epsilon; core.lstm has "
                                        r"input, hidden, forget_bias; core.tanh has none\)"),
                           ("beta1=much", r"attribute 'beta1' is 'much' \(needed f64\)")):
            result = self.train("--attr", attr)
            self.assertEqual(result.code, 2)
            self.assertRegex(result.err, rf"^trellis: \[train tagger\] {fact}\n$")
        self.assertEqual(self.train("--builder", "lstn").code, 2)
        self.assertEqual(self.train("--trainer", "adan").code, 2)
        self.assertEqual(self.train("--activation", "tahn").code, 2)
        self.assertEqual(self.train("--attr", "beta1=2").code, 2)
        missing = self.folder / "none"
        self.corpus = missing
        self.assert_refused(self.train(), 1, f"[read_tagged] cannot read '{missing}': No such file or directory")

    def test_attributes_reach_the_activation_and_the_file(self):
        result = self.train("--epochs", 1, "--activation", "elu", "--attr", "activation.alpha=0.5")
        self.assertEqual((result.code, result.err), (0, ""))
        self.assertIn(rb'\"activation\":\"core.elu\",\"activation_attrs\":{\"alpha\":0.5}', self.model.read_bytes())
        self.assertEqual(self.predict("I saw you\n").code, 0)

    def test_progress_bar_on_a_terminal_only(self):
        terminal, other_end = pty.openpty()
        command = [TRELLIS, "train", "tagger", "--train", self.corpus, "--out", self.model, "--epochs", "1"]
        done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=other_end, text=True, check=False)
        os.close(other_end)
        self.assertEqual(done.returncode, 0)
        shown = os.read(terminal, 65536).decode()
        os.close(terminal)
        self.assertRegex(shown, r"\repoch 1 \[#*\.*\] +\d+ %  loss \d\.\d+")
        self.assertTrue(shown.endswith("\r\x1b[K"))
        self.assertNotIn("\r", done.stdout)

    def test_a_model_that_cannot_be_written(self):
        self.model = self.folder / "none" / "model"
        result = self.train()
        self.assertEqual((result.code, result.err),
                         (1, f"trellis: [save_weights] cannot write '{self.model}': No such file or directory\n"))

    def test_shipped_corpus_not_found(self):
        copy = self.folder / "trellis"
        shutil.copy(TRELLIS, copy)
        library = pathlib.Path(TRELLIS).resolve().parent.parent / "framework"
        result = trellis("train", "tagger", program=str(copy), env={"LD_LIBRARY_PATH": str(library)})
        self.assertEqual(result.code, 1)
        self.assertRegex(result.err, r"^trellis: \[train tagger\] the shipped corpus is in neither '.*/data' nor "
                                     r"'.*/trellis' \(give --train and --dev\)\n$")


class Predict(TaggerTest):
    def setUp(self):
        super().setUp()
        self.assertEqual(self.train("--epochs", 1).code, 0)

    def refusal(self, change=None, **config):
        saved = self.model.read_bytes()
        if change:
            self.change_metadata(change)
        else:
            self.change_config(**config)
        result = self.predict("a b\n")
        self.model.write_bytes(saved)
        self.assertEqual((result.code, result.out), (1, ""))
        return result.err.replace(str(self.model), "M")

    def test_standard_input_that_cannot_be_read(self):
        command = [TRELLIS, "predict", "tagger", "--model", str(self.model)]
        folder = os.open(self.folder, os.O_RDONLY)
        done = subprocess.run(command, stdin=folder, capture_output=True, text=True, check=False)
        os.close(folder)
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (1, "", "trellis: [predict tagger] cannot read standard input: Is a directory\n"))
        done = subprocess.run(["sh", "-c", '"$0" "$@" <&-', *command], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (1, "", "trellis: [predict tagger] cannot read standard input: Bad file descriptor\n"))
        self.assertEqual(self.predict("").code, 0)

    def test_files_that_are_no_tagger(self):
        head = "trellis: [predict tagger] 'M' is no tagger"
        self.assertEqual(self.refusal(lambda m: m.pop("trellis.tagger.words")),
                         f"{head} (needed a file of trellis train tagger: 'trellis.tagger.words' is missing)\n")
        self.assertEqual(self.refusal(format=2), f"{head}: its format is 2 (needed 1)\n")
        self.assertEqual(self.refusal(hidden=0), f"{head}: hidden is 0 (needed 1 .. 8192)\n")
        self.assertEqual(self.refusal(layers=1000), f"{head}: layers is 1000 (needed 1 .. 16)\n")
        self.assertRegex(self.refusal(hidden=8000), rf"^{re.escape(head)}: \d+ bytes are too few for the sizes it claims\n$")
        self.assertEqual(self.refusal(builder_attrs=[]), f"{head}: attributes are no object\n")
        self.assertEqual(self.refusal(builder_attrs={"forget_bias": None}),
                         f"{head}: attribute 'forget_bias' has a value of no known type\n")
        self.assertEqual(self.refusal(lambda m: m.update({"trellis.tagger.tags": "x"})),
                         f"{head}: [vocabulary] line 1: this is no vocabulary (needed 'trellis-vocabulary 1 ..')\n")
        no_unk = "trellis-vocabulary 1 - 1\n1\ta\n"
        self.assertEqual(self.refusal(lambda m: m.update({"trellis.tagger.words": no_unk})),
                         f"{head}: its vocabularies are incomplete\n")
        self.assertEqual(self.refusal(plugins=["x"]), f"{head}: its list of plugins is none\n")
        self.assertTrue(self.refusal(lambda m: m.update({"trellis.tagger": "{"})).startswith(head))
        self.assertTrue(self.refusal(builder=7).startswith(head))
        self.assertEqual(self.refusal(mlp=9).split(":")[1:3],
                         [" [load_weights] 'M'", " does not fit the model"])

    def test_a_plugin_that_is_missing(self):
        self.assertEqual(self.refusal(plugins={"acme-pack": "1.0.0"}),
                         "trellis: [predict tagger] 'M' was trained with plugin acme-pack 1.0.0, which is not loaded "
                         "(add --plugin acme-pack, or name it in the file of --plugins)\n")

    def test_a_file_cut_off(self):
        data = self.model.read_bytes()
        for n in (0, 7, 100, len(data) // 2, len(data) - 1):
            self.model.write_bytes(data[:n])
            result = self.predict("a\n")
            self.assertEqual((result.code, result.out), (1, ""))
            self.assertTrue(result.err.startswith("trellis: [read_metadata] "), result.err)

    def test_many_lines_keep_their_order(self):
        lines = [" ".join(["saw"] * (i % 5)) for i in range(200)]
        out = self.predict("\n".join(lines) + "\n").out.splitlines()
        self.assertEqual([re.sub(r"\|\w+", "", line) for line in out], lines)

    def test_words_are_printed_as_they_came(self):
        self.assertRegex(self.predict("a|b na\u00efve").out, r"^a\|b\|\w+ na\u00efve\|\w+\n$")


if __name__ == "__main__":
    main()
