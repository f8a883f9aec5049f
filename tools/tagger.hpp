// SPDX-License-Identifier: Apache-2.0
//
// The word-level tagger: embeddings, a recurrent network from both ends, a layer with an
// activation, scores of all tags. Builder and activation are whatever the loaded plugins provide.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <trellis/graph.hpp>
#include <trellis/io.hpp>
#include <trellis/model.hpp>
#include <trellis/rnn.hpp>
#include <trellis/runtime.hpp>
#include <vector>

namespace trellis::tools {

struct TaggerConfig {
  std::string builder = "lstm";
  Attrs builder_attrs;  // but the sizes
  std::string activation = "tanh";
  Attrs activation_attrs;
  uint32_t embedding = 64;  // size of a word's vector
  uint32_t hidden = 64;     // of each direction
  uint32_t layers = 1;
  uint32_t mlp = 32;  // size of the layer below the scores
  double dropout = 0.5;
};

// A sentence as numbers.
struct TaggerInput {
  std::vector<uint32_t> words, tags;
};

class Tagger {
 public:
  // Throws Error(argument) when builder or activation are not loaded, or do not fit.
  Tagger(const Runtime& runtime, TaggerConfig config, Vocabulary words, Vocabulary tags);

  // A model file with all it needs to tag. Throws Error(io) when the file is none, Error(plugin)
  // when a plugin it was trained with is missing; `who` starts their texts.
  static Tagger load(const Runtime& runtime, const std::filesystem::path& path,
                     const std::string& who);
  void save(const std::filesystem::path& path) const;

  // The sum over the words of all sentences of -log p(tag).
  Expr loss(Graph& graph, std::span<const TaggerInput* const> sentences) const;
  // The best tag of each word of each sentence, in a graph in infer mode.
  std::vector<std::vector<uint32_t>> tag(Graph& graph,
                                         std::span<const TaggerInput* const> sentences) const;

  const Model& model() const { return model_; }
  const TaggerConfig& config() const { return config_; }
  const Vocabulary& words() const { return words_; }
  const Vocabulary& tags() const { return tags_; }

 private:
  // One {tags} vector for each word.
  void scores(Graph& graph, const TaggerInput& sentence, std::vector<Expr>& out) const;

  TaggerConfig config_;
  Vocabulary words_, tags_;
  Model model_;
  LookupParameter embedding_;
  BiRnn rnn_;
  Parameter mlp_w_, mlp_b_, out_w_, out_b_;
};

}  // namespace trellis::tools
