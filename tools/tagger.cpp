// SPDX-License-Identifier: Apache-2.0
#include "tagger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <trellis/ops/core.hpp>
#include <trellis/plugin.hpp>
#include <trellis/registry.hpp>
#include <utility>

#include "attr_text.hpp"

namespace trellis::tools {
namespace {

constexpr const char* kConfigKey = "trellis.tagger";
constexpr const char* kWordsKey = "trellis.tagger.words";
constexpr const char* kTagsKey = "trellis.tagger.tags";
constexpr int kFormat = 1;
constexpr uint32_t kMaxSize = 8192, kMaxLayers = 16;  // of a file that claims to be a model

// Full ids, so that the file means the same when other plugins are loaded.
TaggerConfig resolved(const Runtime& runtime, TaggerConfig config) {
  config.builder = describe_builder(runtime, config.builder).id;
  config.activation = describe_op(runtime, config.activation).id;
  return config;
}

Attrs sized(const Runtime& runtime, const TaggerConfig& config) {
  const BuilderInfo builder = describe_builder(runtime, config.builder);
  Attrs attrs = config.builder_attrs;
  if (!builder.input_attr.empty()) {
    attrs.push_back({builder.input_attr, int64_t{config.embedding}});
  }
  if (!builder.hidden_attr.empty()) attrs.push_back({builder.hidden_attr, int64_t{config.hidden}});
  return attrs;
}

RnnOptions rnn_options(const TaggerConfig& config) {
  RnnOptions options;
  options.name = "rnn";
  options.layers = config.layers;
  options.dropout.input = config.dropout;
  options.dropout.variational = false;
  return options;
}

Json config_json(const Runtime& runtime, const TaggerConfig& c) {
  const BuilderInfo builder = describe_builder(runtime, c.builder);
  const OpInfo activation = describe_op(runtime, c.activation);
  return {
      {"format", kFormat},
      {"builder", c.builder},
      {"builder_attrs", attrs_to_json(c.builder_attrs)},
      {"activation", c.activation},
      {"activation_attrs", attrs_to_json(c.activation_attrs)},
      {"embedding", c.embedding},
      {"hidden", c.hidden},
      {"layers", c.layers},
      {"mlp", c.mlp},
      {"dropout", c.dropout},
      {"plugins",
       {{builder.plugin, builder.plugin_version}, {activation.plugin, activation.plugin_version}}}};
}

uint32_t size_from(const Json& j, const char* key, uint32_t max) {
  const auto n = j.at(key).get<int64_t>();
  if (n < 1 || n > max)
    throw std::runtime_error(fmt::format("{} is {} (needed 1 .. {})", key, n, max));
  return static_cast<uint32_t>(n);
}

TaggerConfig config_from(const Json& j) {
  if (j.at("format") != kFormat) {
    throw std::runtime_error(
        fmt::format("its format is {} (needed {})", j.at("format").dump(), kFormat));
  }
  TaggerConfig c;
  c.builder = j.at("builder").get<std::string>();
  c.builder_attrs = attrs_from_json(j.at("builder_attrs"));
  c.activation = j.at("activation").get<std::string>();
  c.activation_attrs = attrs_from_json(j.at("activation_attrs"));
  c.embedding = size_from(j, "embedding", kMaxSize);
  c.hidden = size_from(j, "hidden", kMaxSize);
  c.layers = size_from(j, "layers", kMaxLayers);
  c.mlp = size_from(j, "mlp", kMaxSize);
  c.dropout = j.at("dropout").get<double>();
  return c;
}

// A file cannot make the program ask for much more memory than it is long itself.
void check_sizes(const TaggerConfig& c, const Vocabulary& words, uint64_t file_bytes) {
  const uint64_t numbers = file_bytes / sizeof(float);
  const uint64_t table = uint64_t{c.embedding} * words.size();
  if (table > numbers || uint64_t{c.hidden} * c.hidden > 64 * numbers ||
      uint64_t{c.hidden} * c.mlp > numbers) {
    throw std::runtime_error(
        fmt::format("{} bytes are too few for the sizes it claims", file_bytes));
  }
}

void check_plugins(const Runtime& runtime, const Json& needed, const std::string& who,
                   const std::filesystem::path& path) {
  const std::vector<PluginInfo> loaded = loaded_plugins(runtime);
  for (const auto& [id, version] : needed.items()) {
    const bool found = std::any_of(loaded.begin(), loaded.end(),
                                   [&, &id = id](const PluginInfo& p) { return p.id == id; });
    if (!found) {
      fail(ErrorKind::plugin,
           fmt::format("[{}] '{}' was trained with plugin {} {}, which is not loaded (add --plugin "
                       "{}, or name it in the file of --plugins)",
                       who, path.string(), id, version.get<std::string>(), id));
    }
  }
}

}  // namespace

Tagger::Tagger(const Runtime& runtime, TaggerConfig config, Vocabulary words, Vocabulary tags)
    : config_(resolved(runtime, std::move(config))),
      words_(std::move(words)),
      tags_(std::move(tags)),
      model_(runtime),
      embedding_(model_.add_lookup("embedding", words_.size(), {config_.embedding})),
      rnn_(model_, config_.builder, sized(runtime, config_), rnn_options(config_)),
      mlp_w_(model_.add_parameter("mlp.w", {config_.mlp, rnn_.output_size()})),
      mlp_b_(model_.add_parameter("mlp.b", {config_.mlp},
                                  Init::from(std::vector<double>(config_.mlp)))),
      out_w_(model_.add_parameter("out.w", {tags_.size(), config_.mlp})),
      out_b_(model_.add_parameter("out.b", {tags_.size()},
                                  Init::from(std::vector<double>(tags_.size())))) {}

Tagger Tagger::load(const Runtime& runtime, const std::filesystem::path& path,
                    const std::string& who) {
  const Metadata metadata = read_metadata(path);
  for (const char* key : {kConfigKey, kWordsKey, kTagsKey}) {
    if (!metadata.contains(key)) {
      fail(ErrorKind::io,
           fmt::format(
               "[{}] '{}' is no tagger (needed a file of trellis train tagger: '{}' is missing)",
               who, path.string(), key));
    }
  }
  TaggerConfig config;
  Vocabulary words, tags;
  Json json;
  try {
    json = Json::parse(metadata.at(kConfigKey));
    config = config_from(json);
    words = Vocabulary::from_text(metadata.at(kWordsKey));
    tags = Vocabulary::from_text(metadata.at(kTagsKey));
    if (!words.unk() || tags.size() == 0)
      throw std::runtime_error("its vocabularies are incomplete");
    check_sizes(config, words, std::filesystem::file_size(path));
    if (!json.at("plugins").is_object()) throw std::runtime_error("its list of plugins is none");
  } catch (const std::exception& e) {
    fail(ErrorKind::io, fmt::format("[{}] '{}' is no tagger: {}", who, path.string(), e.what()));
  }
  check_plugins(runtime, json.at("plugins"), who, path);
  Tagger tagger(runtime, std::move(config), std::move(words), std::move(tags));
  load_weights(tagger.model_, path);
  return tagger;
}

void Tagger::save(const std::filesystem::path& path) const {
  save_weights(model_, path,
               {{kConfigKey, config_json(model_.runtime(), config_).dump()},
                {kWordsKey, words_.to_text()},
                {kTagsKey, tags_.to_text()}});
}

void Tagger::scores(Graph& graph, const TaggerInput& sentence, std::vector<Expr>& out) const {
  std::vector<Expr> xs;
  xs.reserve(sentence.words.size());
  for (const uint32_t word : sentence.words) xs.push_back(graph.lookup(embedding_, word));
  const Expr mlp_w = graph.parameter(mlp_w_), mlp_b = graph.parameter(mlp_b_);
  const Expr out_w = graph.parameter(out_w_), out_b = graph.parameter(out_b_);
  for (const Expr& h : rnn_.transduce(graph, xs)) {
    const Expr z =
        graph.apply1(config_.activation, {ops::affine(mlp_b, mlp_w, h)}, config_.activation_attrs);
    out.push_back(ops::affine(out_b, out_w, z));
  }
}

Expr Tagger::loss(Graph& graph, std::span<const TaggerInput* const> sentences) const {
  std::vector<Expr> losses;
  for (const TaggerInput* s : sentences) {
    std::vector<Expr> all;
    scores(graph, *s, all);
    for (size_t i = 0; i < all.size(); ++i) {
      losses.push_back(ops::cross_entropy(all[i], s->tags[i]));
    }
  }
  return ops::sum_list(losses);
}

std::vector<std::vector<uint32_t>> Tagger::tag(
    Graph& graph, std::span<const TaggerInput* const> sentences) const {
  std::vector<Expr> all;
  for (const TaggerInput* s : sentences) scores(graph, *s, all);
  graph.forward_all();
  std::vector<std::vector<uint32_t>> out;
  auto next = all.begin();
  for (const TaggerInput* s : sentences) {
    std::vector<uint32_t>& tags = out.emplace_back();
    for (size_t i = 0; i < s->words.size(); ++i) {
      const std::span<const float> y = graph.value(*next++).as<const float>();
      tags.push_back(static_cast<uint32_t>(std::max_element(y.begin(), y.end()) - y.begin()));
    }
  }
  return out;
}

}  // namespace trellis::tools
