// SPDX-License-Identifier: Apache-2.0
#include "op_test.hpp"

using namespace op_test;

namespace {

struct Row {
  const char* op;
  double x, y, slope;
};

void check_rows(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    CAPTURE(row.op);
    CAPTURE(row.x);
    const Result r = grad(row.op, {{{1}, {row.x}}});
    check_near(r.value, {row.y});
    check_near(r.gradient[0], {row.slope});
  }
}

}  // namespace

TEST_CASE("unary operators: values and slopes") {
  check_rows({{"neg", 3, -3, -1},
              {"exp", 1, 2.718281828459045, 2.718281828459045},
              {"log", 2, 0.6931471805599453, 0.5},
              {"log1p", 1, 0.6931471805599453, 0.5},
              {"expm1", 1, 1.718281828459045, 2.718281828459045},
              {"sqrt", 4, 2, 0.25},
              {"reciprocal", 4, 0.25, -0.0625},
              {"square", -3, 9, -6},
              {"cube", -2, -8, 12},
              {"sin", 1, 0.8414709848078965, 0.5403023058681398},
              {"cos", 1, 0.5403023058681398, -0.8414709848078965},
              {"tan", 1, 1.5574077246549023, 3.425518820814759},
              {"sinh", 1, 1.1752011936438014, 1.5430806348152437},
              {"cosh", 1, 1.5430806348152437, 1.1752011936438014},
              {"erf", 0.5, 0.5204998778130465, 0.8787825789354448},
              {"sigmoid", 1, 0.7310585786300049, 0.19661193324148185},
              {"log_sigmoid", 1, -0.31326168751822286, 0.2689414213699951},
              {"softplus", 1, 1.3132616875182228, 0.7310585786300049},
              {"softsign", -3, -0.75, 0.0625},
              {"relu", 2, 2, 1},
              {"relu", -2, 0, 0},
              {"heaviside", 2, 1, 0},
              {"heaviside", -2, 0, 0},
              {"heaviside", 0, 0, 0},
              {"heaviside", kNan, 1, 0}});
}

TEST_CASE("unary operators: at zero, in the tails and beyond their domain") {
  check_rows({{"abs", 0, 0, 0},
              {"abs", -2, 2, -1},
              {"relu", 0, 0, 0},
              {"sqrt", 0, 0, kInf},
              {"log", 0, -kInf, kInf},
              {"log", -1, kNan, -1},
              {"sigmoid", -800, 0, 0},
              {"sigmoid", 800, 1, 0},
              {"log_sigmoid", -800, -800, 1},
              {"log_sigmoid", 800, 0, 0},
              {"softplus", 800, 800, 1},
              {"exp", -kInf, 0, 0},
              {"erf", 40, 1, 0},
              {"log1p", 1e-12, 1e-12, 1},
              {"expm1", -1e-12, -1e-12, 1}});
}

TEST_CASE("unary operators pass NaN") {
  for (const char* op :
       {"neg",  "exp",    "log",     "log1p",       "expm1",    "sqrt",     "reciprocal",
        "abs",  "square", "cube",    "sin",         "cos",      "tan",      "sinh",
        "cosh", "erf",    "sigmoid", "log_sigmoid", "softplus", "softsign", "relu"}) {
    CAPTURE(op);
    check_near(eval(op, {{{1}, {kNan}}}).value, {kNan});
  }
}

TEST_CASE("unary operators answer to DyNet's names") {
  check_near(eval("rectify", {{{2}, {-1, 1}}}).value, {0, 1});
  check_near(eval("dynet.logistic", {{{1}, {0}}}).value, {0.5});
}
