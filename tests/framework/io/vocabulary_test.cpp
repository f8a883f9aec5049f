// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <trellis/io.hpp>

#include "files.hpp"

using namespace trellis;
using test::Folder;

namespace {

Vocabulary fruit() {
  Vocabulary v;
  v.set_unk();
  for (const char* w : {"fig", "kiwi", "fig", "plum", "fig", "kiwi"}) v.add(w);
  return v;
}

}  // namespace

TEST_CASE("vocabulary: ids in order of first sight, with counts") {
  const Vocabulary v = fruit();
  CHECK(v.size() == 4);
  CHECK(v.id("fig") == 1);
  CHECK(v.word(2) == "kiwi");
  CHECK(v.count(1) == 3);
  CHECK(v.count(0) == 0);
  CHECK(v.ids({"plum", "pear"}) == std::vector<uint32_t>{3, 0});
}

TEST_CASE("vocabulary: frozen, it maps what is new to the unknown word and counts nothing") {
  Vocabulary v = fruit();
  v.freeze();
  CHECK(v.add("pear") == v.unk());
  CHECK(v.add("fig") == 1);
  CHECK(v.count(1) == 3);
  CHECK(v.size() == 4);
}

TEST_CASE("vocabulary: without an unknown word a new one is an error") {
  Vocabulary v;
  v.add("fig");
  v.freeze();
  CHECK_THROWS_WITH_AS(v.add("pear"),
                       "[vocabulary] no word 'pear' among 1 (and no unknown word is set)", Error);
  CHECK_FALSE(v.find("pear"));
  CHECK(v.set_unk("?") == 1);  // also after freezing
  CHECK(v.id("pear") == 1);
  CHECK(v.frozen());
  CHECK_THROWS_WITH_AS(v.set_unk("!"), "[vocabulary] the unknown word is set already: '?'", Error);
}

TEST_CASE("vocabulary: refuses words that are not one line of UTF-8, and ids out of range") {
  Vocabulary v = fruit();
  CHECK_THROWS_WITH_AS(v.add(""), "[vocabulary] a word is empty", Error);
  CHECK_THROWS_WITH_AS(v.add("a\nb"), "[vocabulary] a word is not one line of UTF-8: 'a\\x0ab'",
                       Error);
  CHECK_THROWS_WITH_AS(v.add("\xFF"), "[vocabulary] a word is not one line of UTF-8: '\\xff'",
                       Error);
  CHECK_THROWS_AS(v.add(std::string_view("a\0b", 3)), Error);
  CHECK(v.size() == 4);
  CHECK_THROWS_WITH_AS(v.word(4), "[vocabulary] no word 4 (there are 4)", Error);
  CHECK_THROWS_WITH_AS(v.count(9), "[vocabulary] no word 9 (there are 4)", Error);
}

TEST_CASE("vocabulary: a threshold keeps the order and hands the rest to the unknown word") {
  const Vocabulary v = fruit().thresholded(2);
  CHECK(v.frozen());
  CHECK(v.size() == 3);
  CHECK(v.word(2) == "kiwi");
  CHECK(v.id("plum") == 0);
  CHECK(v.count(0) == 1);
  CHECK(fruit().thresholded(1).size() == 4);
}

TEST_CASE("vocabulary: text and back") {
  const Vocabulary v = fruit();
  CHECK(v.to_text() == "trellis-vocabulary 1 0 4\n0\t<unk>\n3\tfig\n2\tkiwi\n1\tplum\n");
  const Vocabulary w = Vocabulary::from_text(v.to_text());
  CHECK(w.to_text() == v.to_text());
  CHECK(w.frozen());
  CHECK(w.id("pear") == 0);

  Vocabulary odd;
  odd.add("a\tb", 7);
  odd.add(" ", 1);
  CHECK(Vocabulary::from_text(odd.to_text()).to_text() == odd.to_text());

  const Folder dir;
  v.save(dir.file("words.txt"));
  CHECK(test::read_bytes(dir.file("words.txt")) == v.to_text());
  CHECK(Vocabulary::load(dir.file("words.txt")).to_text() == v.to_text());
  CHECK(dir.count() == 1);
}

TEST_CASE("vocabulary: text that is none is refused with the line") {
  const std::string head = "trellis-vocabulary 1 ";
  const std::pair<std::string, std::string> cases[] = {
      {"", "line 1: this is no vocabulary (needed 'trellis-vocabulary 1 ..')"},
      {"fig\n", "line 1: this is no vocabulary (needed 'trellis-vocabulary 1 ..')"},
      {head + "4294967295 1\n1\ta\n",
       "line 1: wrong head line (needed: id of the unknown word or -, then the number of words)"},
      {head + "- -1\n",
       "line 1: wrong head line (needed: id of the unknown word or -, then the number of words)"},
      {head + "- 4000000000\n1\ta\n", "line 3: 1 words follow (needed 4000000000)"},
      {head + "- 1\n1\ta\n1\tb\n", "line 3: more than 1 words follow"},
      {head + "- 1\na\n", "line 2: the line is 'a' (needed count, tab, word)"},
      {head + "- 1\nx\ta\n", "line 2: the line is 'x\\x09a' (needed count, tab, word)"},
      {head + "- 2\n1\ta\n1\ta\n", "line 3: the word 'a' is there twice"},
      {head + "- 1\n1\t\n", "line 2: the word '' is empty"},
      {head + "- 1\n1\t\xFF\n", "line 2: the line is not UTF-8"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.first);
    CHECK_THROWS_WITH_AS(Vocabulary::from_text(c.first), ("[vocabulary] " + c.second).c_str(),
                         Error);
  }
  const Folder dir;
  const auto path = dir.write("v", "nothing\n");
  CHECK_THROWS_WITH_AS(Vocabulary::load(path),
                       ("[vocabulary] " + path.string() +
                        ":1: this is no vocabulary (needed 'trellis-vocabulary 1 ..')")
                           .c_str(),
                       Error);
}

TEST_CASE("vocabulary: a cut-off text is refused, a changed byte never crashes") {
  const std::string text = fruit().to_text();
  for (size_t n = 0; n < text.size(); ++n) {
    CAPTURE(n);
    if (n + 4 < text.size()) CHECK_THROWS_AS(Vocabulary::from_text(text.substr(0, n)), Error);
    for (const char c : {'\0', '\n', '9', '\xFF'}) {
      std::string changed = text;
      changed[n] = c;
      try {
        Vocabulary::from_text(changed);
      } catch (const Error&) {
      }
    }
  }
}
