// SPDX-License-Identifier: Apache-2.0
//
// Operators that take batches apart and put them together.
//
//   pick_batch    the batch elements of a list, as a batch
//   concat_batch  the batch elements of all inputs, one after another

#include <numeric>

#include "kernels/blocks.hpp"
#include "kernels/terms.hpp"

namespace trellis::ops {

struct PickBatch {
  struct Attrs {
    Ints ids;
  };
  static constexpr auto attrs =
      fields(field("ids", &Attrs::ids, "batch elements to take, in order; may repeat", required(),
                   each(1, ~0u)));
  static constexpr OpSpec spec{
      .name = "pick_batch",
      .summary = "some elements of a batch",
      .formula = "y_b = x_{ids_b}",
      .examples =
          "pick_batch({3}x4, ids=[2]); pick_batch({2,3}x4, ids=[3,0,3]); pick_batch({}x2, ids=[1])",
      .aliases = {"dynet.pick_batch_elem", "dynet.pick_batch_elems"},
      .inputs = {"x"},
      .batch = Batch::never,
  };

  static Dim infer(const Attrs& a, Dims x) {
    for (const std::int64_t id : a.ids)
      if (id < 0 || id >= x[0].batch)
        fail(TRL_E_RANGE, "'ids' is out of bounds: ", id, " in a batch of ", x[0].batch,
             " (needs 0 to ", x[0].batch - 1, ")");
    return x[0].with_batch(static_cast<std::uint32_t>(a.ids.size()));
  }

  static void forward(const Attrs& a, const auto& f) {
    const std::uint64_t n = f.x().size();
    for (std::size_t k = 0; k < a.ids.size(); ++k)
      copy_blocks(1, n, f.y().data(static_cast<std::uint32_t>(k)), n,
                  f.x().data(static_cast<std::uint32_t>(a.ids[k])), n);
  }
  static void backward(const Attrs& a, const auto& b) {
    const auto dx = b.dx_zeroed();
    if (!dx) return;
    const std::uint64_t n = dx.size();
    for (std::size_t k = 0; k < a.ids.size(); ++k)
      add_blocks(1, n, dx.data(static_cast<std::uint32_t>(a.ids[k])), n,
                 b.dy().data(static_cast<std::uint32_t>(k)), n);
  }
};

struct ConcatBatch {
  static constexpr OpSpec spec{
      .name = "concat_batch",
      .summary = "joins batches one after another",
      .doc = "All inputs have one shape; batch sizes may differ.",
      .formula = "y = x0, x1, ... along the batch",
      .examples =
          "concat_batch({3}, {3}); concat_batch({2,3}x4, {2,3}, {2,3}x2); concat_batch({3}x2, "
          "{3,1})",
      .aliases = {"dynet.concatenate_to_batch"},
      .inputs = {In("x").variadic()},
      .batch = Batch::never,
  };

  static Dim infer(Dims x) {
    same_as(x);
    std::uint32_t batch = 0;
    for (const trl_dim& d : x) batch += d.batch;
    return x[0].with_batch(batch);
  }

  static void forward(const auto& f) {
    std::uint32_t at = 0;
    for (std::uint32_t i = 0; i < f.inputs(); at += f.x(i).batch(), ++i)
      copy_blocks(1, f.x(i).total(), f.y().data(at), 0, f.x(i).data(), 0);
  }
  static void backward(const auto& b) {
    std::uint32_t at = 0;
    for (std::uint32_t i = 0; i < b.inputs(); at += b.x(i).batch(), ++i)
      if (const auto dx = b.dx(i)) {
        if (dx.stores())
          copy_blocks(1, dx.total(), dx.data(), 0, b.dy().data(at), 0);
        else
          add_blocks(1, dx.total(), dx.data(), 0, b.dy().data(at), 0);
      }
  }

  using uses = GradientOps;
  static void expand_grad(const auto& g) {
    std::int64_t at = 0;
    for (std::uint32_t i = 0; i < g.inputs(); ++i) {
      std::vector<std::int64_t> ids(g.shape(g.x(i)).batch);
      std::iota(ids.begin(), ids.end(), at);
      at += static_cast<std::int64_t>(ids.size());
      if (g.wants(i)) g.dx(i, term(g, g.dy()).template to<use::PickBatch>(Ints(ids)));
    }
  }
};

TRL_OPS(batch, PickBatch, ConcatBatch)

}  // namespace trellis::ops
