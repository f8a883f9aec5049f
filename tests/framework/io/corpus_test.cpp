// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <trellis/io.hpp>

#include "files.hpp"

using namespace trellis;
using test::Folder;
using Words = std::vector<std::string>;

namespace {

std::string row(const std::string& id, const std::string& form, const std::string& upos) {
  return id + "\t" + form + "\tlemma\t" + upos + "\t_\t_\t0\troot\t_\t_\n";
}

// The refusal without the file's name: "<line>: <fact>".
std::string refusal(const Folder& dir, std::string_view text,
                    CorpusFormat format = CorpusFormat::guess) {
  const auto path = dir.write("corpus", text);
  try {
    read_tagged(path, format);
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::io);
    const std::string head = "[read_tagged] " + path.string() + ":", text_of = e.what();
    return text_of.starts_with(head) ? text_of.substr(head.size()) : text_of;
  }
  return "read without complaint";
}

}  // namespace

TEST_CASE("read_tagged: conll-u with comments, multiword tokens and empty nodes") {
  const Folder dir;
  const std::string text = "# sent_id = 1\n# text = it's so|so\n" + row("1-2", "it's", "_") +
                           row("1", "it", "PRON") + row("2", "is", "AUX") +
                           row("2.1", "gone", "VERB") + row("3", "so | so", "ADV") + "\n\n" +
                           "# sent_id = 2\n" + row("1", "no", "INTJ");
  const auto check = [](const std::vector<TaggedSentence>& s) {
    REQUIRE(s.size() == 2);
    CHECK(s[0].words == Words{"it", "is", "so | so"});
    CHECK(s[0].tags == Words{"PRON", "AUX", "ADV"});
    CHECK(s[1].words == Words{"no"});
  };
  check(read_tagged(dir.write("a", text)));
  check(read_tagged(dir.write("b", test::gzip(text)), CorpusFormat::conllu));
}

TEST_CASE("read_tagged: word|tag, the tag after the last bar") {
  const Folder dir;
  const auto s = read_tagged(dir.write("a", "\nthe|DET  a|b|NOUN\t||PUNCT\n\nx|Y"));
  REQUIRE(s.size() == 2);
  CHECK(s[0].words == Words{"the", "a|b", "|"});
  CHECK(s[0].tags == Words{"DET", "NOUN", "PUNCT"});
  CHECK(s[1].tags == Words{"Y"});
}

TEST_CASE("read_tagged: a sentence that starts with # is word|tag when all its tokens are") {
  const Folder dir;
  CHECK(read_tagged(dir.write("a", "#|SYM 1|NUM\n"))[0].words == Words{"#", "1"});
  CHECK(read_tagged(dir.write("b", "#|SYM 1\t|NUM\n" + row("1", "a", "X")), CorpusFormat::conllu)
            .size() == 1);
}

TEST_CASE("read_tagged: refusals name line, fact and need") {
  const Folder dir;
  CHECK(refusal(dir, "# c\n1\ta\n") ==
        "2: the line has 2 columns: '1\\x09a' (needed 10, separated by tabs)");
  CHECK(refusal(dir, "no corpus\n") ==
        "1: the line has 1 column: 'no corpus' (needed 10, separated by tabs)");
  CHECK(refusal(dir, row("1", "a", "X") + row("3", "b", "Y")) ==
        "2: the word's number is '3' (needed 2)");
  CHECK(refusal(dir, row("x-y", "a", "X")) == "1: the word's number is 'x-y' (needed 1)");
  CHECK(refusal(dir, row("1", "", "X")) == "1: the word's form is empty");
  CHECK(refusal(dir, row("1", "a", "_")) == "1: the word 'a' has no tag in column 4");
  CHECK(refusal(dir, "a|X b\n", CorpusFormat::word_tag) == "1: the token is 'b' (needed word|tag)");
  CHECK(refusal(dir, "a|X\n|Y\n") == "2: the token is '|Y' (needed word|tag)");
  CHECK(refusal(dir, "a|X\nb|\n") == "2: the token is 'b|' (needed word|tag)");
  CHECK(refusal(dir, "# only a comment\n") ==
        "[read_tagged] '" + dir.file("corpus").string() +
            "' holds no sentence (needed CoNLL-U or word|tag)");
}

TEST_CASE("read_tagged: names of formats") {
  for (const CorpusFormat f : {CorpusFormat::guess, CorpusFormat::conllu, CorpusFormat::word_tag}) {
    CHECK(corpus_format_from(corpus_format_name(f)) == f);
  }
  CHECK_THROWS_WITH_AS(
      corpus_format_from("xml"),
      "[corpus_format_from] unknown format 'xml' (needed guess, conllu or word-tag)", Error);
}

TEST_CASE("split_words: blanks and tabs, any number of them") {
  CHECK(split_words("  a\tb  c ") == Words{"a", "b", "c"});
  CHECK(split_words(" \t").empty());
}
