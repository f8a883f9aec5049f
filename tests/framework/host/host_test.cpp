// SPDX-License-Identifier: Apache-2.0
#include "host/host.hpp"

#include <set>

#include "calls.hpp"

using namespace trellis;
using namespace trellis::detail;
using namespace trellis::test;

TEST_CASE("host: one immutable table for the process, with both versions") {
  CHECK(host_table() == host_table());
  CHECK(host_table()->struct_size == sizeof(trl_host));
  CHECK(host_table()->abi_major == TRL_ABI_MAJOR);
  CHECK(host_table()->abi_minor == TRL_ABI_MINOR);
  CHECK(view_of(host_table()->version) == version());
  HostCall a(Phase::init), b(Phase::exec);
  CHECK(a.call.host == b.call.host);
}

TEST_CASE("host: the first failure of a call is kept and its status handed back") {
  HostCall c(Phase::exec);
  CHECK(c.call.host->fail(c, TRL_E_SHAPE, str("[x] first")) == TRL_E_SHAPE);
  CHECK(c.call.host->fail(c, TRL_E_OOM, str("[x] second")) == TRL_E_OOM);
  CHECK(c.text(TRL_E_OOM) == "[x] first");
  CHECK(c.call.host->fail(c, TRL_E_RANGE, str("[x] third")) == TRL_E_RANGE);
  CHECK(c.text(TRL_E_RANGE) == "[x] third");
  CHECK(c.call.host->fail(c, TRL_OK, {nullptr, 9}) == TRL_E_INTERNAL);
}

TEST_CASE("host: log reaches the runtime's sink") {
  std::vector<std::pair<int, std::string>> lines;
  RuntimeOptions options;
  options.no_plugins = true;
  options.log = [&](int level, std::string_view text) { lines.emplace_back(level, text); };
  const Runtime runtime(options);
  Call call(runtime.core());
  call.host->log(&call, 1, str("hello"));
  REQUIRE(lines.size() == 1);
  CHECK(lines[0] == std::pair(1, std::string("hello")));
}

TEST_CASE("host: interfaces by name and revision, in init only") {
  HostCall c(Phase::init);
  std::set<const void*> tables;
  for (const char* id : {"trl.registry/1", "trl.exec/1", "trl.devices/1", "trl.graph/1",
                         "trl.linalg/1", "trl.options/1"}) {
    uint32_t size = 0;
    const void* const table = c.call.host->get_interface(c, str(id), &size);
    CAPTURE(id);
    REQUIRE(table);
    CHECK(*static_cast<const uint32_t*>(table) == size);
    CHECK(c.call.host->get_interface(c, str(id), nullptr) == table);
    tables.insert(table);
  }
  CHECK(tables.size() == 6);
  uint32_t size = 7;
  CHECK(c.call.host->get_interface(c, str("trl.exec/2"), &size) == nullptr);
  CHECK(size == 0);
  CHECK(c.call.host->get_interface(c, str("acme.tok/1"), &size) == nullptr);
  CHECK(c.call.text.empty());
  c.call.begin(Phase::exec, nullptr);
  CHECK(c.call.host->get_interface(c, str("trl.exec/1"), &size) == nullptr);
  CHECK(c.text(TRL_E_INVALID) == "[host] get_interface is not allowed in forward and backward");
}

TEST_CASE("host: each phase has a name and each kind of error a status") {
  std::set<std::string_view> names;
  for (const Phase p : {Phase::entry, Phase::init, Phase::fini, Phase::infer, Phase::create,
                        Phase::exec, Phase::graph, Phase::describe, Phase::fill, Phase::update})
    names.insert(phase_name(p));
  CHECK(names.size() == 10);
  CHECK(status_of(ErrorKind::shape) == TRL_E_SHAPE);
  CHECK(status_of(ErrorKind::dtype) == TRL_E_DTYPE);
  CHECK(status_of(ErrorKind::range) == TRL_E_RANGE);
  CHECK(status_of(ErrorKind::memory) == TRL_E_OOM);
  CHECK(status_of(ErrorKind::argument) == TRL_E_INVALID);
  CHECK(status_of(ErrorKind::plugin) == TRL_E_INTERNAL);
}

TEST_CASE("host: nothing thrown inside a host function leaves it") {
  HostCall c(Phase::exec);
  CHECK(guard_host(c, []() -> trl_status { fail(ErrorKind::range, "[x] far"); }) == TRL_E_RANGE);
  CHECK(c.text(TRL_E_RANGE) == "[x] far");
  CHECK(guard_host(c, []() -> trl_status { throw std::bad_alloc(); }) == TRL_E_OOM);
  CHECK(c.text(TRL_E_OOM) == "out of memory");
  CHECK(guard_host(c, []() -> trl_status { throw std::runtime_error("boom"); }) == TRL_E_INTERNAL);
  CHECK(c.text(TRL_E_INTERNAL) == "boom");
  CHECK(guard_host(c, []() -> trl_status { throw 7; }) == TRL_E_INTERNAL);
  CHECK(c.text(TRL_E_INTERNAL) == "an exception of unknown type");
}
