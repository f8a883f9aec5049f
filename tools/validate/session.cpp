// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <trellis/random.hpp>
#include <utility>

#include "validate/bench_host.hpp"
#include "validate/test.hpp"

namespace trellis::validate {
namespace {

uint64_t hash_text(std::string_view text) {
  uint64_t h = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return h;
}

}  // namespace

Context::Context(Session& session, std::string_view test, const Subject& subject)
    : session_(session),
      seed_(mix64(session.run_seed, mix64(hash_text(test), hash_text(subject.id)))) {}

const PluginInfo& Context::info() const { return session_.plugin; }
BenchHost& Context::bench() { return session_.bench(); }
const Runtime& Context::runtime() { return session_.runtime(); }
RuntimeOptions Context::runtime_options() const { return session_.options; }

void Context::fail(std::string fact) { throw Failure{std::move(fact)}; }
void Context::skip(std::string reason) { throw Skip{std::move(reason)}; }
void Context::note(std::string figure) { notes_.push_back(std::move(figure)); }

void Context::at(std::string_view what) {
  ++tried_;
  if (!session_.crumb) return;
  const size_t n = std::min(what.size(), Session::kCrumbSize / 2 - 1);
  std::memcpy(session_.crumb, what.data(), n);
  session_.crumb[n] = '\0';
}

Session::Session(PluginInfo p, RuntimeOptions o, uint64_t seed)
    : plugin(std::move(p)), options(std::move(o)), run_seed(seed) {}

Session::~Session() = default;

BenchHost& Session::bench() {
  if (!bench_)
    bench_ = std::make_unique<BenchHost>(plugin, [this]() -> const Runtime& { return runtime(); });
  return *bench_;
}

const Runtime& Session::runtime() {
  if (!runtime_) {
    try {
      runtime_ = std::make_unique<Runtime>(options);
    } catch (const Error& e) {
      throw Failure{fmt::format("the plugin cannot be loaded: {}", e.what())};
    }
  }
  return *runtime_;
}

std::vector<Subject> Session::subjects() {
  const trl_plugin& t = bench().tables();
  std::vector<Subject> all{{Kind::plugin, plugin.id}};
  // A provider of products has one descriptor for each element type.
  const auto known = [&all](Kind kind, std::string_view id) {
    return std::any_of(all.begin(), all.end(),
                       [&](const Subject& s) { return s.kind == kind && s.id == id; });
  };
  const auto add = [&](Kind kind, const auto* const* table, uint32_t n) {
    for (uint32_t i = 0; i < n && table; ++i)
      if (table[i] && !known(kind, view_of(table[i]->id)))
        all.push_back({kind, std::string(view_of(table[i]->id))});
  };
  add(Kind::op, t.ops, t.n_ops);
  add(Kind::builder, t.builders, t.n_builders);
  add(Kind::softmax, t.softmaxes, t.n_softmaxes);
  add(Kind::initializer, t.initializers, t.n_initializers);
  add(Kind::trainer, t.trainers, t.n_trainers);
  add(Kind::linalg, t.linalgs, t.n_linalgs);
  return all;
}

}  // namespace trellis::validate
