// SPDX-License-Identifier: Apache-2.0
//
// What all programs of the task benchmark share, Trellis's and its peers': options, data, order of
// examples, timing, the line of results. C++17, standard library only.
//
//   --data DIR     text/{test,dev}.txt, tags/dev.txt, trees/{train,dev}.txt (see docs/benchmarks.md)
//   --mb N         examples an update
//   --seconds S    CPU seconds of timed training, in three windows; half of that for inference
//   --warm S       CPU seconds before timing
//   --epochs N     train N epochs and print quality on dev instead of rates
//   --updates N    make exactly N updates and nothing else (for counting instructions)
//   --json         a line of JSON instead of text
//   --char         tagger: rare words are spelt out
//   --no-infer     training only
//   --NAME VALUE   of one program, see there
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace bench {

// ---------------------------------------------------------------- options

class Options {
 public:
  Options(int argc, char** argv) {
    for (int k = 1; k < argc; ++k) {
      std::string name = argv[k];
      if (name.rfind("--", 0) != 0) throw std::runtime_error("expected --option, got " + name);
      name.erase(0, 2);
      const bool value = k + 1 < argc && std::string(argv[k + 1]).rfind("--", 0) != 0;
      values_[name] = value ? argv[++k] : "1";
    }
  }
  bool flag(const std::string& name) const { return values_.count(name) != 0; }
  std::string text(const std::string& name, const std::string& other) const {
    const auto at = values_.find(name);
    return at == values_.end() ? other : at->second;
  }
  double number(const std::string& name, double other) const {
    const auto at = values_.find(name);
    return at == values_.end() ? other : std::stod(at->second);
  }
  size_t count(const std::string& name, size_t other) const {
    return static_cast<size_t>(number(name, static_cast<double>(other)));
  }
  size_t mb() const { return count("mb", 1); }
  std::string data() const { return text("data", "."); }

 private:
  std::map<std::string, std::string> values_;
};

// ---------------------------------------------------------------- data

class Vocab {
 public:
  int add(const std::string& s) { return ids_.emplace(s, size()).first->second; }
  int find(const std::string& s, int otherwise) const {
    const auto at = ids_.find(s);
    return at == ids_.end() ? otherwise : at->second;
  }
  int size() const { return static_cast<int>(ids_.size()); }

 private:
  std::unordered_map<std::string, int> ids_;
};

inline std::ifstream open(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot open " + path);
  return in;
}

// Lines that are not blank, split at white space.
inline std::vector<std::vector<std::string>> read_tokens(const std::string& path) {
  std::ifstream in = open(path);
  std::vector<std::vector<std::string>> out;
  for (std::string line, word; std::getline(in, line);) {
    std::istringstream words(line);
    std::vector<std::string> sentence;
    while (words >> word) sentence.push_back(word);
    if (!sentence.empty()) out.push_back(std::move(sentence));
  }
  if (out.empty()) throw std::runtime_error("no data in " + path);
  return out;
}

// Language model: word 0 starts and ends a sentence, word 1 is unknown. Longest sentences first.
struct TextData {
  std::vector<std::vector<int>> train, dev;
  int vocab = 0;

  explicit TextData(const std::string& dir) {
    Vocab words;
    words.add("<s>");
    const int unknown = words.add("<unk>");
    for (const auto& s : read_tokens(dir + "/text/test.txt")) {
      train.emplace_back();
      for (const auto& w : s) train.back().push_back(words.add(w));
    }
    for (const auto& s : read_tokens(dir + "/text/dev.txt")) {
      dev.emplace_back();
      for (const auto& w : s) dev.back().push_back(words.find(w, unknown));
    }
    const auto longer = [](const auto& a, const auto& b) { return a.size() > b.size(); };
    std::stable_sort(train.begin(), train.end(), longer);
    std::stable_sort(dev.begin(), dev.end(), longer);
    vocab = words.size();
  }
};

// Tagger: the first 1,500 sentences train. Words seen at most 5 times there are unknown (0), or
// kRare with the numbers of their characters (1 at both ends, 0 unknown).
constexpr int kRare = -1;
struct Sentence {
  std::vector<int> words, tags;
  std::vector<std::vector<int>> spelling;  // empty but for rare words
};
struct TagData {
  std::vector<Sentence> train, dev;
  int words = 0, tags = 0, chars = 0;

  TagData(const std::string& dir, bool spell) {
    constexpr size_t kTrain = 1500, kSeldom = 5;
    const auto all = read_tokens(dir + "/tags/dev.txt");
    const auto word = [](const std::string& s) { return s.substr(0, s.rfind('|')); };
    const auto tag = [](const std::string& s) { return s.substr(s.rfind('|') + 1); };
    const size_t cut = std::min(kTrain, all.size());
    std::map<std::string, size_t> counts;
    Vocab word_ids, tag_ids, char_ids;
    word_ids.add("<unk>");
    const int unknown = char_ids.add("<unk>"), edge = char_ids.add("<edge>");
    for (size_t k = 0; k < cut; ++k)
      for (const auto& s : all[k]) {
        ++counts[word(s)];
        tag_ids.add(tag(s));
        for (const char c : word(s)) char_ids.add(std::string(1, c));
      }
    for (const auto& [w, n] : counts)
      if (n > kSeldom) word_ids.add(w);
    for (size_t k = 0; k < all.size(); ++k) {
      Sentence s;
      for (const auto& token : all[k]) {
        const std::string w = word(token);
        s.words.push_back(word_ids.find(w, spell ? kRare : 0));
        s.tags.push_back(tag_ids.find(tag(token), 0));
        s.spelling.emplace_back();
        if (s.words.back() != kRare) continue;
        s.spelling.back().push_back(edge);
        for (const char c : w)
          s.spelling.back().push_back(char_ids.find(std::string(1, c), unknown));
        s.spelling.back().push_back(edge);
      }
      (k < cut ? train : dev).push_back(std::move(s));
    }
    words = word_ids.size(), tags = tag_ids.size(), chars = char_ids.size();
  }
};

// Binary trees, "(label (label word) (label word))"; children before parents, the root last.
struct Tree {
  std::vector<int> label, left, right, height, word;  // left, right: -1 at leaves; word: -1 above
  int size() const { return static_cast<int>(label.size()); }
};
struct TreeData {
  std::vector<Tree> train, dev;
  int vocab = 0, labels = 0;

  explicit TreeData(const std::string& dir) {
    Vocab words;
    words.add("<unk>");
    const auto known = [&](const std::string& w) { return words.add(w); };
    const auto maybe = [&](const std::string& w) { return words.find(w, 0); };
    read(dir + "/trees/train.txt", train, known);
    read(dir + "/trees/dev.txt", dev, maybe);
    vocab = words.size();
    for (const auto* part : {&train, &dev})
      for (const Tree& t : *part)
        for (const int l : t.label) labels = std::max(labels, l + 1);
  }

 private:
  template <class Id>
  static void read(const std::string& path, std::vector<Tree>& out, const Id& id) {
    std::ifstream in = open(path);
    for (std::string line; std::getline(in, line);) {
      if (line.empty()) continue;
      size_t at = 0;
      out.emplace_back();
      parse(line, at, out.back(), id);
    }
    if (out.empty()) throw std::runtime_error("no data in " + path);
  }
  template <class Id>
  static int parse(const std::string& s, size_t& at, Tree& t, const Id& id) {
    const auto need = [&](char c) {
      if (at >= s.size() || s[at] != c) throw std::runtime_error("malformed tree: " + s);
      ++at;
    };
    need('(');
    int label = 0;
    while (at < s.size() && s[at] >= '0' && s[at] <= '9') label = 10 * label + (s[at++] - '0');
    need(' ');
    int left = -1, right = -1, height = 0, word = -1;
    if (at < s.size() && s[at] == '(') {
      left = parse(s, at, t, id);
      need(' ');
      right = parse(s, at, t, id);
      height =
          1 + std::max(t.height[static_cast<size_t>(left)], t.height[static_cast<size_t>(right)]);
    } else {
      const size_t end = std::min(s.find(')', at), s.size());
      word = id(s.substr(at, end - at));
      at = end;
    }
    need(')');
    t.label.push_back(label);
    t.left.push_back(left);
    t.right.push_back(right);
    t.height.push_back(height);
    t.word.push_back(word);
    return t.size() - 1;
  }
};

// Shuffled passes over 0 .. n-1, for ever. Every program sees the same order.
class Cycle {
 public:
  explicit Cycle(size_t n) : order_(n) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::shuffle(order_.begin(), order_.end(), rng_);
  }
  size_t next() {
    if (at_ == order_.size()) std::shuffle(order_.begin(), order_.end(), rng_), at_ = 0;
    return order_[at_++];
  }

 private:
  std::vector<size_t> order_;
  std::mt19937 rng_{7};
  size_t at_ = 0;
};

// ---------------------------------------------------------------- measuring

inline double cpu_seconds() {  // of the whole process: a peer's helper threads count as well
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
inline double peak_rss_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// Figures of one run, printed as one line.
class Report {
 public:
  Report(const Options& options, const std::string& program, const std::string& task)
      : json_(options.flag("json")) {
    add("program", "\"" + program + "\"");
    add("task", "\"" + task + "\"");
    number("mb", static_cast<double>(options.mb()));
  }
  void number(const std::string& name, double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    add(name, text);
  }
  void print() const {
    std::string line = json_ ? "{" : "";
    for (size_t k = 0; k < fields_.size(); ++k) {
      if (k != 0) line += json_ ? ", " : "  ";
      line += json_ ? "\"" + fields_[k].first + "\": " : fields_[k].first + " ";
      line += fields_[k].second;
    }
    std::printf("%s%s\n", line.c_str(), json_ ? "}" : "");
    std::fflush(stdout);
  }

 private:
  void add(const std::string& name, const std::string& value) { fields_.emplace_back(name, value); }
  bool json_;
  std::vector<std::pair<std::string, std::string>> fields_;
};

// Units a CPU second: median of three windows, their spread, and the peak of memory so far.
template <class Step>
void measure(Report& report, const std::string& what, double warm, double seconds, Step&& step) {
  for (const double t = cpu_seconds(); cpu_seconds() - t < warm;) step();
  std::array<double, 3> rates;
  for (double& rate : rates) {
    const double t = cpu_seconds();
    double units = 0, spent = 0;
    do units += static_cast<double>(step());
    while ((spent = cpu_seconds() - t) < seconds / 3);
    rate = units / spent;
  }
  std::sort(rates.begin(), rates.end());
  report.number(what, rates[1]);
  report.number(what + "_low", rates[0]);
  report.number(what + "_high", rates[2]);
  report.number(what + "_rss_mib", peak_rss_mib());
}

// One task: `train` and `infer` handle one minibatch and return its words or trees; `dev` returns
// the quality on dev; `per_epoch`: updates in a pass over the training data.
template <class Train, class Infer, class Dev>
void run_task(const Options& options, Report& report, const std::string& quality, size_t per_epoch,
              Train&& train, Infer&& infer, Dev&& dev) {
  const size_t epochs = options.count("epochs", 0), updates = options.count("updates", 0);
  if (updates != 0) {
    double units = 0;
    for (size_t k = 0; k < updates; ++k) units += static_cast<double>(train());
    report.number("updates", static_cast<double>(updates));
    report.number("units", units);
    report.number("train_rss_mib", peak_rss_mib());
  } else if (epochs != 0) {
    double spent = 0;
    for (size_t e = 1; e <= epochs; ++e) {
      const double t = cpu_seconds();
      for (size_t k = 0; k < per_epoch; ++k) train();
      spent += cpu_seconds() - t;
      report.number(quality + "_" + std::to_string(e), dev());
      report.number("train_seconds_" + std::to_string(e), spent);
    }
  } else {
    const double seconds = options.number("seconds", 3);
    measure(report, "train", options.number("warm", 0.5), seconds, train);
    if (!options.flag("no-infer")) measure(report, "infer", 0.3, seconds / 2, infer);
  }
}

// Runs `body(options)`; an error is one line on standard error.
template <class Body>
int guarded(int argc, char** argv, Body&& body) {
  try {
    body(Options(argc, argv));
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
    return 1;
  }
}

}  // namespace bench
