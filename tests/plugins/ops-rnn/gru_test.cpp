// SPDX-License-Identifier: Apache-2.0
#include "rnn_test.hpp"

using namespace rnn_test;

TEST_CASE("gru: two steps with known weights") {
  Model m(runtime(), DType::f64);
  const Rnn rnn(m, "gru", {{"input", 3}, {"hidden", 2}});
  uint32_t shift[] = {0, 3, 5, 1, 2, 4}, i = 0;
  for (const char* name : {"w", "u", "b", "wn", "un", "bn"})
    set_weights(m.parameter("/gru/layer0/" + std::string(name)), shift[i++]);
  Graph g = graph();
  CHECK(near(rnn.transduce(g, two_inputs(g))[1].value().as_doubles(),
             {0.37439816922453123, -0.43448555893938745}));
  CHECK(rnn.state_size() == 1);
}
