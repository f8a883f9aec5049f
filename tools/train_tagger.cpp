// SPDX-License-Identifier: Apache-2.0
//
// trellis train tagger: trains a word-level tagger, on the ATIS corpus unless told otherwise.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <numeric>
#include <trellis/io.hpp>
#include <trellis/plugin.hpp>
#include <trellis/random.hpp>
#include <trellis/registry.hpp>
#include <trellis/train.hpp>

#include "attr_text.hpp"
#include "command.hpp"
#include "progress.hpp"
#include "table.hpp"
#include "tagger.hpp"

namespace trellis::tools {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr const char* kWho = "train tagger";
constexpr double kUnknownRate = 0.5;  // how often a word seen once is hidden while training
constexpr size_t kEvaluationBatch = 64;

struct Options {
  fs::path train, dev, test, out = "tagger.safetensors";
  std::string format = "guess";
  TaggerConfig tagger;
  std::string trainer = "adam";
  std::vector<std::string> attrs;
  uint32_t epochs = 8, minibatch = 8;
  uint64_t threshold = 1, seed = 1;
  double lr = 0;  // 0: the trainer's default
  double clip = 5;
};

struct Corpus {
  std::vector<TaggerInput> sentences;
  uint64_t words = 0, unknown = 0;
  double unknown_percent() const {
    return 100.0 * static_cast<double>(unknown) / static_cast<double>(std::max<uint64_t>(words, 1));
  }
};

// The shipped corpus: beside the program in a build folder, in the data folder when installed.
fs::path atis(const Global& global, const char* part) {
  const std::string name = fmt::format("atis/en_atis-ud-{}.conllu.gz", part);
  const fs::path places[] = {global.folder / "data", global.folder / TRELLIS_DATA_FROM_BIN};
  for (const fs::path& place : places) {
    std::error_code error;
    if (fs::exists(place / name, error)) return (place / name).lexically_normal();
  }
  fail(ErrorKind::io,
       fmt::format("[{}] the shipped corpus is in neither '{}' nor '{}' (give --train and --dev)",
                   kWho, places[0].string(), places[1].lexically_normal().string()));
}

// What CLI11's own check lets pass: NaN and infinity.
CLI::Validator finite_positive() {
  return CLI::Validator(
      [](const std::string& text) {
        double v = 0;
        const char* const end = text.data() + text.size();
        const auto read = std::from_chars(text.data(), end, v);
        const bool good = read.ec == std::errc() && read.ptr == end && std::isfinite(v) && v > 0;
        return good ? std::string() : "not a positive number: " + text;
      },
      "POSITIVE");
}

// Tags that training never saw get the number of tags: never predicted, always wrong.
Corpus numbered(const std::vector<TaggedSentence>& sentences, const Vocabulary& words,
                const Vocabulary& tags) {
  Corpus corpus;
  for (const TaggedSentence& s : sentences) {
    TaggerInput input;
    input.words = words.ids(s.words);
    for (const std::string& tag : s.tags)
      input.tags.push_back(tags.find(tag).value_or(tags.size()));
    corpus.words += s.words.size();
    corpus.unknown +=
        static_cast<uint64_t>(std::count(input.words.begin(), input.words.end(), words.unk()));
    corpus.sentences.push_back(std::move(input));
  }
  return corpus;
}

double accuracy(const Tagger& tagger, const Corpus& corpus) {
  GraphOptions options;
  options.mode = Mode::infer;
  Graph graph(tagger.model().runtime(), options);
  uint64_t right = 0;
  std::vector<const TaggerInput*> batch;
  for (size_t at = 0; at < corpus.sentences.size(); at += batch.size()) {
    batch.clear();
    const size_t n = std::min(kEvaluationBatch, corpus.sentences.size() - at);
    for (size_t i = 0; i < n; ++i) batch.push_back(&corpus.sentences[at + i]);
    graph.clear();
    const auto tags = tagger.tag(graph, batch);
    for (size_t s = 0; s < n; ++s) {
      for (size_t i = 0; i < tags[s].size(); ++i) right += tags[s][i] == batch[s]->tags[i];
    }
  }
  return static_cast<double>(right) / static_cast<double>(corpus.words);
}

// One run of training; everything it prints but the progress bar goes to standard output.
class Training {
 public:
  Training(const Global& global, const Options& options, const Runtime& runtime)
      : global_(global), options_(options), runtime_(runtime), random_(options.seed) {}

  int run() {
    const TaggerConfig config = configure();
    read();
    Tagger tagger(runtime_, config, words_, tags_);
    Trainer trainer(tagger.model(), options_.trainer, trainer_attrs_);
    trainer.set_clip_threshold(options_.clip);
    print_model(tagger, trainer);
    const double best = train(tagger, trainer);
    say(fmt::format("saved {}", options_.out.string()));
    if (!test_.sentences.empty()) {
      const Tagger saved = Tagger::load(runtime_, options_.out, kWho);
      fmt::print("test accuracy {:.2f} %\n", 100 * accuracy(saved, test_));
    }
    if (!dev_.sentences.empty()) fmt::print("dev accuracy {:.2f} %\n", 100 * best);
    return kOk;
  }

 private:
  void say(const std::string& line) const {
    if (global_.quiet) return;
    fmt::print("{}\n", line);
    std::fflush(stdout);  // lines of a long run are read while it runs
  }

  void read() {
    const bool shipped = options_.train.empty();
    const fs::path train = shipped ? atis(global_, "train") : options_.train;
    const fs::path dev = shipped && options_.dev.empty() ? atis(global_, "dev") : options_.dev;
    const CorpusFormat format = corpus_format_from(options_.format);
    const std::vector<TaggedSentence> sentences = read_tagged(train, format);

    Vocabulary all;
    all.set_unk();
    for (const TaggedSentence& s : sentences) {
      for (const std::string& w : s.words) all.add(w);
      for (const std::string& t : s.tags) tags_.add(t);
    }
    tags_.freeze();
    words_ = all.thresholded(options_.threshold);
    train_ = numbered(sentences, words_, tags_);
    say(fmt::format("train {}: {} sentences, {} words, {} types, {} tags", train.string(),
                    sentences.size(), train_.words, words_.size() - 1, tags_.size()));
    if (!dev.empty()) dev_ = read_part("dev", dev, format);
    if (!options_.test.empty()) test_ = read_part("test", options_.test, format);
  }

  Corpus read_part(const char* name, const fs::path& path, CorpusFormat format) const {
    Corpus part = numbered(read_tagged(path, format), words_, tags_);
    say(fmt::format("{:<5} {}: {} sentences, {} words, {:.2f} % <unk>", name, path.string(),
                    part.sentences.size(), part.words, part.unknown_percent()));
    return part;
  }

  TaggerConfig configure() {
    TaggerConfig config = options_.tagger;
    AttrTarget builder{"builder", describe_builder(runtime_, config.builder), {}};
    AttrTarget activation{"activation", describe_op(runtime_, config.activation), {}};
    AttrTarget trainer{"trainer", describe_trainer(runtime_, options_.trainer), {}};
    if (options_.lr > 0) trainer.attrs.push_back({"lr", options_.lr});
    assign_attrs(kWho, options_.attrs, {&trainer, &builder, &activation});
    config.builder_attrs = builder.attrs;
    config.activation_attrs = activation.attrs;
    trainer_attrs_ = trainer.attrs;
    return config;
  }

  void print_model(const Tagger& tagger, const Trainer& trainer) const {
    std::vector<std::string> plugins;
    for (const PluginInfo& p : loaded_plugins(runtime_))
      plugins.push_back(fmt::format("{} {}", p.id, p.version));
    const TaggerConfig& c = tagger.config();
    say(fmt::format("plugins {}", join(plugins)));
    say(
        fmt::format("model {} numbers: embedding {}, {} x {} {} {} in both directions, {} {}, {} "
                    "tags; {} lr {}",
                    tagger.model().element_count(), c.embedding, c.layers, c.builder,
                    c.layers == 1 ? "layer of" : "layers of", c.hidden, c.activation, c.mlp,
                    tags_.size(), trainer.id(), trainer.learning_rate()));
  }

  // The model of the best epoch on dev (without dev: of the last one) is saved. Returns its
  // accuracy.
  double train(const Tagger& tagger, Trainer& trainer) {
    double best = -1;
    for (uint32_t epoch = 1; epoch <= options_.epochs; ++epoch) {
      const auto start = Clock::now();
      const double loss = train_epoch(tagger, trainer, epoch);
      const std::chrono::duration<double> seconds = Clock::now() - start;
      std::string line =
          fmt::format("epoch {:>2}: loss {:.4f} a word, {:.0f} words/s, {:.1f} s", epoch, loss,
                      static_cast<double>(train_.words) / seconds.count(), seconds.count());
      double now = best;
      if (!dev_.sentences.empty()) {
        now = accuracy(tagger, dev_);
        line += fmt::format(", dev accuracy {:.2f} %", 100 * now);
      }
      if (now > best || dev_.sentences.empty()) {
        best = now;
        tagger.save(options_.out);
      }
      say(line);
    }
    return best;
  }

  double train_epoch(const Tagger& tagger, Trainer& trainer, uint32_t epoch) {
    std::vector<uint32_t> order(train_.sentences.size());
    std::iota(order.begin(), order.end(), 0u);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.below(i)]);

    Graph graph(runtime_);
    Progress progress(fmt::format("epoch {}", epoch), train_.words, global_.quiet);
    double loss = 0;
    uint64_t done = 0;
    std::vector<TaggerInput> hidden(options_.minibatch);
    std::vector<const TaggerInput*> batch;
    for (size_t at = 0; at < order.size(); at += batch.size()) {
      const size_t n = std::min<size_t>(options_.minibatch, order.size() - at);
      batch.clear();
      for (size_t i = 0; i < n; ++i) {
        hidden[i] = train_.sentences[order[at + i]];
        done += hidden[i].words.size();
        hide_rare(hidden[i]);
        batch.push_back(&hidden[i]);
      }
      graph.clear();
      const Expr total = tagger.loss(graph, batch);
      loss += graph.value(total).as_scalar();
      graph.backward(total);
      trainer.update();
      progress.advance(done, fmt::format("loss {:.4f}", loss / static_cast<double>(done)));
    }
    return loss / static_cast<double>(train_.words);
  }

  // Words seen once stand in for all that are not known, or <unk> would never be trained.
  void hide_rare(TaggerInput& sentence) {
    for (uint32_t& word : sentence.words) {
      if (words_.count(word) == 1 && random_.uniform() < kUnknownRate) word = *words_.unk();
    }
  }

  const Global& global_;
  const Options& options_;
  const Runtime& runtime_;
  RandomEngine random_;
  Vocabulary words_, tags_;
  Corpus train_, dev_, test_;
  Attrs trainer_attrs_;
};

void add_options(CLI::App& command, Options& o) {
  const auto sizes = CLI::Range(1, 65536);
  command.add_option("--train", o.train, "training sentences; without it the shipped ATIS corpus")
      ->option_text("FILE");
  command.add_option("--dev", o.dev, "sentences that decide which epoch is kept")
      ->option_text("FILE");
  command.add_option("--test", o.test, "sentences for a last figure")->option_text("FILE");
  command.add_option("--format", o.format, "of all files; plain or .gz")
      ->capture_default_str()
      ->check(CLI::IsMember({"guess", "conllu", "word-tag"}));
  command.add_option("--out", o.out, "where the model goes")
      ->capture_default_str()
      ->option_text("FILE");
  command.add_option("--epochs", o.epochs, "passes over the training sentences")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  command.add_option("--minibatch", o.minibatch, "sentences an update")
      ->capture_default_str()
      ->check(sizes);
  command.add_option("--seed", o.seed, "of everything random")->capture_default_str();
  command
      .add_option("--builder", o.tagger.builder, "recurrent network: any builder that is loaded")
      ->capture_default_str();
  command.add_option("--trainer", o.trainer, "update rule: any trainer that is loaded")
      ->capture_default_str();
  command
      .add_option("--activation", o.tagger.activation,
                  "of the layer below the scores: any operator with one input")
      ->capture_default_str();
  command
      .add_option("--attr", o.attrs,
                  "attribute of trainer, builder or activation: key=value, trainer.key=value")
      ->option_text("KEY=VALUE")
      ->take_all()
      ->allow_extra_args(false);
  command.add_option("--lr", o.lr, "learning rate; without it the trainer's own")
      ->check(finite_positive());
  command.add_option("--clip", o.clip, "greatest norm of the gradient; 0: any")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command.add_option("--embedding", o.tagger.embedding, "size of a word's vector")
      ->capture_default_str()
      ->check(CLI::Range(1, 8192));
  command.add_option("--hidden", o.tagger.hidden, "size of each direction")
      ->capture_default_str()
      ->check(CLI::Range(1, 8192));
  command.add_option("--layers", o.tagger.layers, "of the recurrent network")
      ->capture_default_str()
      ->check(CLI::Range(1, 16));
  command.add_option("--mlp", o.tagger.mlp, "size of the layer below the scores")
      ->capture_default_str()
      ->check(CLI::Range(1, 8192));
  command.add_option("--dropout", o.tagger.dropout, "on the input of each recurrent layer")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--threshold", o.threshold, "words seen less often are <unk>")
      ->capture_default_str();
}

}  // namespace

void add_train_tagger(CLI::App& parent, const Global& global, Action& action) {
  CLI::App& command = *parent.add_subcommand(
      "tagger", "a tagger for words: CoNLL-U or word|tag; without options it trains on ATIS");
  auto options = std::make_shared<Options>();
  add_options(command, *options);
  command.callback([&global, &action, options] {
    action = [&global, options] {
      RuntimeOptions runtime_options = global.runtime;
      runtime_options.seed = options->seed;
      const Runtime runtime(runtime_options);
      return Training(global, *options, runtime).run();
    };
  });
}

}  // namespace trellis::tools
