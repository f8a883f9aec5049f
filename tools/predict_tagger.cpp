// SPDX-License-Identifier: Apache-2.0
//
// trellis predict tagger: reads sentences, one a line, and writes word|tag.

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <trellis/io.hpp>

#include "command.hpp"
#include "tagger.hpp"

namespace trellis::tools {
namespace {

constexpr size_t kBatch = 64;  // lines a graph; on a terminal every line is answered at once

// Reads up to `most` lines; false at the end.
bool read_lines(size_t most, std::vector<std::vector<std::string>>& lines) {
  lines.clear();
  for (std::string line; lines.size() < most && std::getline(std::cin, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(split_words(line));
  }
  return !lines.empty();
}

int predict(const Global& global, const std::filesystem::path& model) {
  const Runtime runtime(global.runtime);
  const Tagger tagger = Tagger::load(runtime, model, "predict tagger");
  GraphOptions options;
  options.mode = Mode::infer;
  Graph graph(runtime, options);
  const size_t most = ::isatty(STDIN_FILENO) == 1 ? 1 : kBatch;
  for (std::vector<std::vector<std::string>> lines; read_lines(most, lines);) {
    std::vector<TaggerInput> inputs(lines.size());
    std::vector<const TaggerInput*> batch;
    for (size_t i = 0; i < lines.size(); ++i) {
      inputs[i].words = tagger.words().ids(lines[i]);
      batch.push_back(&inputs[i]);
    }
    graph.clear();
    const auto tags = tagger.tag(graph, batch);
    for (size_t i = 0; i < lines.size(); ++i) {
      std::string text;
      for (size_t k = 0; k < lines[i].size(); ++k) {
        text +=
            fmt::format("{}{}|{}", k == 0 ? "" : " ", lines[i][k], tagger.tags().word(tags[i][k]));
      }
      fmt::print("{}\n", text);
    }
    std::fflush(stdout);
  }
  // A folder, or what is closed, ends like an empty file does, but for errno.
  errno = 0;
  char rest = 0;
  if (std::cin.bad() || ::read(STDIN_FILENO, &rest, 1) < 0)
    fail(ErrorKind::io,
         fmt::format("[predict tagger] cannot read standard input: {}", std::strerror(errno)));
  return kOk;
}

}  // namespace

void add_predict_tagger(CLI::App& parent, const Global& global, Action& action) {
  CLI::App& command = *parent.add_subcommand(
      "tagger", "tags sentences from standard input, one a line, words parted by blanks");
  auto model = std::make_shared<std::filesystem::path>();
  command.add_option("--model", *model, "a file that trellis train tagger wrote")
      ->option_text("FILE")
      ->required();
  command.callback(
      [&global, &action, model] { action = [&global, model] { return predict(global, *model); }; });
}

}  // namespace trellis::tools
