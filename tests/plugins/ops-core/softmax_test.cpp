// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

TEST_CASE("softmax: sums to one along its axis") {
  check_near(eval("softmax", {{{3}, {1, 2, 3}}}).value,
             {0.09003057317038046, 0.24472847105479767, 0.6652409557748219});
  const Result r = eval("softmax", {{{2, 2}, {0, 0, 1, -1}}}, {{"axis", 1}});
  check_near(r.value,
             {0.2689414213699951, 0.7310585786300049, 0.7310585786300049, 0.2689414213699951});
}

TEST_CASE("log_softmax: does not underflow") {
  check_near(eval("log_softmax", {{{2}, {0, 200}}}).value, {-200, 0});
  check_near(grad("log_softmax", {{{2}, {0, 200}}}, {}, {1, 0}).gradient[0], {1, -1});
}

TEST_CASE("logsumexp: along both axes of a matrix that is not square") {
  const In x{{2, 3}, {0, 1, 0, 1, 0, 1}};
  check_near(eval("logsumexp", {x}).value,
             {1.3132616875182228, 1.3132616875182228, 1.3132616875182228});
  check_near(eval("logsumexp", {x}, {{"axis", 1}}).value, {1.0986122886681098, 2.09861228866811});
}

TEST_CASE("logsumexp: minus infinity is an honest logarithm of zero") {
  const Result none = grad("logsumexp", {{{2}, {-kInf, -kInf}}});
  check_near(none.value, {-kInf});
  check_near(none.gradient[0], {0, 0});
  const Result one = grad("logsumexp", {{{2}, {-kInf, 2}}});
  check_near(one.value, {2});
  check_near(one.gradient[0], {0, 1});
  check_near(eval("logsumexp", {{{2}, {kInf, 2}}}).value, {kInf});
  check_near(eval("logsumexp", {{{2}, {kNan, 2}}}).value, {kNan});
}

TEST_CASE("softmax family: large scores, each line by itself") {
  const In x{Dim({2}, 2), {1000, 1001, -1000, -1001}};
  check_near(eval("softmax", {x}).value,
             {0.2689414213699951, 0.7310585786300049, 0.7310585786300049, 0.2689414213699951});
  check_near(eval("logsumexp", {x}).value, {1001.3132616875182, -999.6867383124818});
}
