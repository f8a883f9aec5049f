// SPDX-License-Identifier: Apache-2.0
//
// A small plugin compiled into a test program and registered by hand: operators with every trait
// the graph and the executor must handle (test_ops.cpp), and counters that say how often a kernel
// ran.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <trellis/graph.hpp>
#include <trellis/model.hpp>
#include <vector>

#include "registry/registry.hpp"
#include "runtime/call.hpp"

extern "C" trl_status trl_plugin_entry_v1(trl_call* call, trl_plugin* out);

namespace trellis::test {

// Kernels of several threads count at once.
struct Counter {
  std::atomic<int> n{0};
  Counter() = default;
  Counter(const Counter& other) : n(other.n.load()) {}
  Counter& operator=(const Counter& other) {
    n = other.n.load();
    return *this;
  }
  Counter& operator++() {
    ++n;
    return *this;
  }
  operator int() const { return n; }
};
struct Counts {
  Counter forward, backward;
};
extern Counts counts;

// A runtime with the operators below and nothing else.
class TestRuntime {
 public:
  TestRuntime() : runtime_(options()) {
    detail::RuntimeCore& core = runtime_.core();
    detail::Call call(core);
    trl_plugin table{};
    table.struct_size = sizeof table;
    call.begin(detail::Phase::entry, nullptr);
    if (trl_plugin_entry_v1(&call, &table) != TRL_OK) fail(ErrorKind::internal, call.text);
    PluginRecord record;
    record.id = "test-ops";
    record.version = "1.0.0";
    record.path = "test";
    record.namespaces = {"test"};
    PluginRecord& added = core.registry->add(std::move(record), table);
    plugin_ = &added;
    call.begin(detail::Phase::init, nullptr);
    if (table.init && table.init(&call, &added.self) != TRL_OK)
      fail(ErrorKind::internal, call.text);
  }
  ~TestRuntime() {  // the loader does it for plugins it loaded
    if (!plugin_ || !plugin_->table.fini) return;
    detail::Call call(runtime_.core());
    call.begin(detail::Phase::fini, plugin_->self);
    plugin_->table.fini(&call);
  }
  TestRuntime(const TestRuntime&) = delete;
  operator const Runtime&() const { return runtime_; }
  Runtime& get() { return runtime_; }

 private:
  static RuntimeOptions options() {
    RuntimeOptions o;
    o.no_plugins = true;
    return o;
  }
  Runtime runtime_;
  PluginRecord* plugin_ = nullptr;
};

inline Expr apply(Graph& g, const char* op, std::initializer_list<Expr> in,
                  const Attrs& attrs = {}) {
  return g.apply1("test." + std::string(op), in, attrs, {});  // no line in error texts
}

}  // namespace trellis::test
