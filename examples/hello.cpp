// SPDX-License-Identifier: Apache-2.0
//
// Learns XOR: two inputs, eight hidden units, one answer. Shown in README.md.

#include <cstdio>
#include <trellis/ops/core.hpp>
#include <trellis/trellis.hpp>
using namespace trellis;

int main() {
  Runtime runtime;  // loads the plugins that are installed
  Model model(runtime);
  Parameter w = model.add_parameter("w", {8, 2}), b = model.add_parameter("b", {8});
  Parameter v = model.add_parameter("v", {1, 8});
  Trainer trainer(model, "adam", {{"lr", 0.1}});
  const float questions[] = {0, 0, 0, 1, 1, 0, 1, 1}, answers[] = {0, 1, 1, 0};
  for (int step = 1; step <= 300; ++step) {
    Graph g(runtime);  // a new graph every time: it may look different every time
    Expr x = g.input(Dim({2}, 4), questions), y = g.input(Dim({1}, 4), answers);  // a batch of 4
    Expr p = ops::sigmoid(g.parameter(v) * ops::tanh(g.parameter(w) * x + g.parameter(b)));
    Expr loss = ops::sum_batches(ops::squared_distance(p, y));
    g.backward(loss);
    trainer.update();
    if (step % 100 == 0) std::printf("step %d: loss %.4f\n", step, loss.scalar());
  }
}
