// SPDX-License-Identifier: Apache-2.0
//
// The rows of the micro-benchmark with libtorch: the same work as bench/tasks/micro.cpp, with
// gradients forgotten before each backward pass, which is its cheapest way.

#include <unistd.h>

#include "tasks/rows.hpp"
#include "torch.hpp"

namespace bench {
namespace {

void nodes(Rows& rows) {
  const Tensor start = torch::ones({}).requires_grad_();
  const Tensor other = torch::full({}, 1e-3f).requires_grad_();
  Tensor x;
  const auto seconds = rows.least_each(
      [&] {
        x = start, forget({start, other});
      },
      [&] {
        x = start;
        for (int i = 0; i < kChain; ++i) x = x + other;
      },
      [&] { x.backward(); });
  const std::string name = "scalar node, graph of " + text(kChain);
  rows.print(name + ", construct + forward", "ns", 1e9 * seconds[1] / kChain);
  rows.print(name + ", backward", "ns", 1e9 * seconds[2] / kChain);
}

void affine(Rows& rows) {
  const Tensor w = leaf({256, 256}), b = leaf({256});
  for (const int batch : {1, 64}) {
    const Tensor x = leaf({batch, 256});
    const auto y = [&] { return torch::tanh(torch::linear(x, w, b)); };
    rows.pair("affine + tanh 256x256 batch " + text(batch), "us", 1e6, y, [&] {
      forget({x, w, b});
      y().sum().backward();
    });
  }
}

void lstm(Rows& rows) {
  for (const LstmCase& c : kLstmCases) {
    torch::nn::LSTM layer(128, c.hidden);
    torch::nn::LSTMCell cell(128, c.hidden);
    const Tensor x = torch::randn({kSteps, c.batch, 128}), h0 = torch::zeros({c.batch, c.hidden});
    const auto xs = x.unbind(0);
    const auto whole = [&] { return std::get<0>(layer(x)).sum(); };
    const auto stepwise = [&] {
      Tensor h = h0, s = h0;
      std::vector<Tensor> hs;
      for (const Tensor& step : xs) {
        std::tie(h, s) = cell(step, std::make_tuple(h, s));
        hs.push_back(h);
      }
      return torch::stack(hs).sum();
    };
    rows.pair(lstm_name(c), "us", 1e6 / kSteps, whole, [&] {
      forget(layer->parameters());
      whole().backward();
    });
    rows.pair(lstm_name(c) + ", cell by cell", "us", 1e6 / kSteps, stepwise, [&] {
      forget(cell->parameters());
      stepwise().backward();
    });
  }
}

void softmax(Rows& rows) {
  const Tensor w = leaf({10000, 256}), b = leaf({10000});
  for (const int batch : {1, 64}) {
    const Tensor x = leaf({batch, 256}), y = torch::randint(10000, {batch}, torch::kInt64);
    const auto loss = [&] {
      return functional::cross_entropy(torch::linear(x, w, b), y, summed());
    };
    rows.pair("softmax loss 10,000 classes batch " + text(batch), "us", 1e6, loss, [&] {
      forget({x, w, b});
      loss().backward();
    });
  }
}

void products(Rows& rows) {
  const Tensor a = leaf({512, 512}), b = leaf({512, 512});
  rows.print("matmul 512^3", "ms", 1e3 * rows.least([&] { torch::mm(a, b); }));
}

void convolution(Rows& rows) {
  torch::nn::Conv2d conv(torch::nn::Conv2dOptions(64, 64, 3).padding(1));
  const Tensor image = leaf({16, 64, 28, 28});
  rows.pair(
      "conv2d 3x3 64->64 28x28 batch 16", "ms", 1e3, [&] { conv(image); },
      [&] {
        forget({image, conv->weight, conv->bias});
        conv(image).sum().backward();
      });
}

void adam(Rows& rows) {
  std::vector<Tensor> parameters;
  for (int k = 0; k < 10; ++k) {
    parameters.push_back(leaf({1000, 1000}));
    parameters.back().mutable_grad() = torch::full({1000, 1000}, 1e-3f);
  }
  torch::optim::Adam adam(parameters, torch::optim::AdamOptions(1e-3));
  const auto refill = [&] {
    for (const Tensor& p : parameters) p.mutable_grad().fill_(1e-3f);
  };
  rows.print("Adam 10 M parameters", "ms", 1e3 * rows.least_part(refill, [&] { adam.step(); }));
  rows.print("Adam 10 M parameters, clipped", "ms", 1e3 * rows.least_part(refill, [&] {
    torch::nn::utils::clip_grad_norm_(parameters, 1.0);
    adam.step();
  }));
}

void sparse(Rows& rows) {
  RowNumbers numbers;
  std::vector<int64_t> v;
  for (const bool adam : {false, true}) {
    const Tensor table = torch::zeros({kTableRows, kTableWidth}).requires_grad_();
    const Tensor mean = adam ? torch::zeros_like(table) : Tensor();
    const Tensor square = adam ? torch::zeros_like(table) : Tensor();
    torch::optim::SGD sgd({table}, torch::optim::SGDOptions(0.1));
    const auto touch_rows = [&] {
      forget({table});
      torch::embedding(table, ids(v), -1, false, true).sum().backward();
    };
    const auto touch = [&] {
      numbers.next(v, kTableRows);
      touch_rows();
    };
    const auto update = [&] {
      if (adam)
        adam_rows(table, mean, square, 1);
      else
        sgd.step();
    };
    for (uint32_t part = 0; numbers.pages(v, part); ++part) {
      touch_rows();
      update();
    }
    const double seconds = rows.least_part(touch, update);
    rows.print(std::string("sparse update, 20 rows of 1 M x 128, ") + (adam ? "Adam" : "SGD"), "us",
               1e6 * seconds);
  }
}

void files(Rows& rows) {
  torch::nn::Sequential model, again;
  for (int k = 0; k < 10; ++k) {
    model->push_back(torch::nn::Linear(1000, 1000));
    again->push_back(torch::nn::Linear(1000, 1000));
  }
  for (const std::string folder : {"/dev/shm", "."}) {
    const std::string path = folder + "/libtorch-micro." + std::to_string(getpid()) + ".pt";
    double save = 1e9, load = 1e9;
    for (int k = 0; k < 5; ++k) {
      const double t0 = wall_seconds();
      torch::save(model, path);
      const double t1 = wall_seconds();
      torch::load(again, path);
      const double t2 = wall_seconds();
      save = std::min(save, t1 - t0), load = std::min(load, t2 - t1);
    }
    unlink(path.c_str());
    const std::string where = folder == "." ? ", disk" : ", memory file system";
    rows.print("save 10 M parameters" + where, "ms", 1e3 * save);
    rows.print("load 10 M parameters" + where, "ms", 1e3 * load);
  }
}

void run(const Options& options) {
  if (options.flag("startup")) {  // to the first result, then out
    auto x = torch::ones({4, 4}, torch::requires_grad());
    x.mm(x).tanh().sum().backward();
    if (!x.grad().defined()) throw std::runtime_error("no gradient");
    return Rows::print_peak();
  }
  setup();
  Rows rows(options);
  rows.group("nodes", [&] { nodes(rows); });
  rows.group("affine", [&] { affine(rows); });
  rows.group("lstm", [&] { lstm(rows); });
  rows.group("softmax", [&] { softmax(rows); });
  rows.group("products", [&] { products(rows); });
  rows.group("convolution", [&] { convolution(rows); });
  rows.group("adam", [&] { adam(rows); });
  rows.group("sparse", [&] { sparse(rows); });
  rows.group("files", [&] { files(rows); });
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::guarded(argc, argv, bench::run); }
