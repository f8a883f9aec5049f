// SPDX-License-Identifier: Apache-2.0
//
// Parameters that several processes share. The children run the whole step: graph, backward,
// update.

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <trellis/expr.hpp>
#include <trellis/train.hpp>
#include <vector>

using namespace trellis;

#if defined(__SANITIZE_THREAD__)
#define TRELLIS_NO_FORK 1  // the thread sanitizer does not follow children
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TRELLIS_NO_FORK 1
#endif
#endif

namespace {

Runtime& runtime() {
  static Runtime r;
  return r;
}

// w and one row of a table, trained on |w + row|^2.
struct Tiny {
  Model model;
  Parameter w;
  LookupParameter table;

  explicit Tiny(bool shared)
      : model(runtime(), ModelOptions{.shared = shared}),
        w(model.add_parameter("w", {2}, Init::from({1, 2}))),
        table(model.add_lookup("table", 3, {2}, Init::from({0, 0, 1, 1, 0, 0}))) {}

  double loss(bool train, Trainer* trainer = nullptr) {
    Graph g(runtime());
    const Expr sum = g.parameter(w) + g.lookup(table, 1);
    const Expr y = roles::sum(roles::mul(sum, sum));
    const double value = y.scalar();
    if (train) {
      g.backward(y);
      trainer->update();
    }
    return value;
  }
  void train(int steps) {
    Trainer trainer(model, "sgd", {{"lr", 0.1}});
    for (int i = 0; i < steps; ++i) loss(true, &trainer);
  }
};

#ifndef TRELLIS_NO_FORK
// Runs f in a child; true: it returned true.
bool in_child(const std::function<bool()>& f) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    bool good = false;
    try {
      good = f();
    } catch (...) {
    }
    _exit(good ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
#endif

}  // namespace

TEST_CASE("shared model: is one like others within a process") {
  Tiny shared(true), own(false);
  CHECK(shared.model.shared());
  CHECK_FALSE(own.model.shared());
  shared.train(3);
  own.train(3);
  CHECK(shared.w.value().as_vector() == own.w.value().as_vector());
  CHECK(shared.table.value().as_vector() == own.table.value().as_vector());
}

#ifndef TRELLIS_NO_FORK

TEST_CASE("shared model: what a child trains, its parent sees, tables too") {
  for (const bool shared : {true, false}) {
    Tiny there(shared), expected(false);
    expected.train(5);
    const double before = there.loss(false);
    REQUIRE(in_child([&] {
      there.train(5);
      return true;
    }));
    CHECK(there.w.value().as_vector() ==
          (shared ? expected.w.value().as_vector() : std::vector<float>{1, 2}));
    CHECK(there.table.row(1).as_vector() ==
          (shared ? expected.table.row(1).as_vector() : std::vector<float>{1, 1}));
    CHECK((there.loss(false) < before) == shared);
    // gradients are each process's own
    CHECK(there.w.gradient().as_vector() == std::vector<float>{0, 0});
  }
}

TEST_CASE("shared model: what the parent trains, its children see") {
  Tiny here(true);
  int looked[2], trained[2];
  REQUIRE(pipe(looked) == 0);
  REQUIRE(pipe(trained) == 0);
  char c = 'x';
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    bool good = false;
    close(looked[0]);  // a side that fails ends the other's waiting
    close(trained[1]);
    try {
      good = here.loss(false) == 13 && write(looked[1], &c, 1) == 1 &&
             read(trained[0], &c, 1) == 1 && here.loss(false) < 13 && here.w.value().at(0) < 1 &&
             here.table.row(1).at(1) < 1;
    } catch (...) {
    }
    _exit(good ? 0 : 1);
  }
  close(looked[1]);
  close(trained[0]);
  CHECK(read(looked[0], &c, 1) == 1);
  here.train(4);
  CHECK(write(trained[1], &c, 1) == 1);
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  close(looked[0]);
  close(trained[1]);
}

TEST_CASE("shared model: several children take turns") {
  Tiny there(true), expected(false);
  expected.train(6);
  for (int i = 0; i < 3; ++i)
    REQUIRE(in_child([&] {
      there.train(2);
      return true;
    }));
  CHECK(there.w.value().as_vector() == expected.w.value().as_vector());
  CHECK(there.table.value().as_vector() == expected.table.value().as_vector());
}

TEST_CASE("shared model: a child cannot add parameters, its maker can") {
  Tiny there(true);
  const std::string maker = std::to_string(getpid());
  CHECK(in_child([&] {
    const std::string end = "another process made this shared model: " + maker + ", this is " +
                            std::to_string(getpid()) + " (add parameters there, before the fork)";
    int refused = 0;
    try {
      there.model.add_parameter("late", {2});
    } catch (const Error& e) {
      refused += e.kind() == ErrorKind::state && e.what() == "[add_parameter /late] " + end;
    }
    try {
      there.model.add_lookup("late", 2, {2});
    } catch (const Error& e) {
      refused += e.kind() == ErrorKind::state && e.what() == "[add_lookup /late] " + end;
    }
    return refused == 2 && there.model.size() == 2;
  }));
  there.model.add_parameter("late", {2});
  CHECK(there.model.size() == 3);
}

#endif
