// SPDX-License-Identifier: Apache-2.0
//
// Trainers: an update rule and its slots. The host clips, decays, refuses NaN and finds the rows of
// lookup tables.
//
//   struct Momentum {
//     struct Attrs { double lr = 0.01, mu = 0.9; };
//     static constexpr auto attrs = fields(field("lr", &Attrs::lr, "learning rate"),
//                                          field("mu", &Attrs::mu, "momentum"));
//     static constexpr TrainerSpec spec{.name = "momentum",
//                                       .summary = "gradient descent with momentum",
//                                       .slots = {"v"}};
//     static void update(const Attrs& a, const auto& u) {
//       const auto lr = u.lr(), mu = u.number(a.mu);
//       u.each([=](auto& w, auto g, auto& v) { v = mu * v - lr * g; w += v; });
//     }
//   };
#pragma once

#include <trellis/abi/trainer.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <trellis/sdk/plugin.hpp>
#include <trellis/sdk/tensor.hpp>
#include <utility>

namespace trellis::sdk {
inline namespace [[gnu::visibility("hidden")]] v0 {

// A tensor of the parameter's shape that the host keeps: {"m"}, or Slot("v", "squares", 1e-4)
// filled with 1e-4 at first.
struct Slot {
  std::string_view name, doc;
  double init = 0;
  constexpr Slot() = default;
  constexpr Slot(const char* slot_name, std::string_view about = {}, double first = 0)
      : name(slot_name), doc(about), init(first) {}
};

struct TrainerSpec {
  std::string_view name{}, summary{}, doc{}, formula{};
  List<std::string_view, 6> aliases{};
  List<Slot, 8> slots{};
  std::uint32_t version = 1, state_version = 1;
};

// One update of one parameter; T is float or double.
template <class T, std::size_t kSlots>
class Update {
 public:
  explicit Update(const trl_update_args& args) : args_(args) {}

  T lr() const { return static_cast<T>(args_.lr); }
  std::uint64_t step() const { return args_.step; }  // global to the trainer; 1 at the first update
  static T number(double v) { return static_cast<T>(v); }
  bool sparse() const { return args_.rows != nullptr; }

  // f(w, g, slots...) for every element that is updated: w and slots by reference, g the gradient,
  // clipped.
  template <class F>
  void each(F&& f) const {
    runs([&]<std::size_t... I>(std::uint64_t n, T* __restrict w, const T* __restrict g,
                               const std::array<T*, kSlots>& slots, std::index_sequence<I...>) {
      element_loop(n, w, g, f, slots[I]...);
    });
  }

  // f(n, w, g, slots, index_sequence) for every run of elements that follow one another: the whole
  // parameter, or one row of a table after another. g is NOT scaled here: multiply by grad_scale().
  template <class F>
  void runs(F&& f) const {
    const Tensor<T> w(*args_.value);
    const Tensor<const T> g(*args_.grad);
    constexpr auto kAll = std::make_index_sequence<kSlots>{};
    std::array<T*, kSlots> slots;
    if (!sparse()) {
      for (std::size_t k = 0; k < kSlots; ++k) slots[k] = Tensor<T>(args_.slots[k]).data();
      f(w.total(), w.data(), g.data(), slots, kAll);
      return;
    }
    const std::uint32_t rank = w.rank();
    const std::uint64_t row = rank == 0 ? 1 : w.size() / w.dim(rank - 1);
    for (std::uint32_t i = 0; i < args_.n_rows; ++i) {
      const std::uint64_t at = row * args_.rows[i];
      for (std::size_t k = 0; k < kSlots; ++k) slots[k] = Tensor<T>(args_.slots[k]).data() + at;
      f(row, w.data() + at, g.data() + row * i, slots, kAll);
    }
  }
  T grad_scale() const { return static_cast<T>(args_.grad_scale); }

 private:
  template <class F, class... S>
  void element_loop(std::uint64_t n, T* __restrict w, const T* __restrict g, F& f,
                    S* __restrict... slots) const {
    const T scale = grad_scale();
    for (std::uint64_t i = 0; i < n; ++i) f(w[i], scale * g[i], slots[i]...);
  }

  const trl_update_args& args_;
};

namespace detail {

template <class R, class T>
trl_status update_of(const trl_update_args* args) {
  return guard(args->call, R::spec.name, [args] {
    const Update<T, R::spec.slots.size()> u(*args);
    if constexpr (HasAttrs<R>)
      R::update(read_attrs<R>(args->attrs), u);
    else
      R::update(u);
  });
}
template <class R, class T>
void add_update(Catalog& catalog, trl_str id) {
  trl_update_desc to{};
  to.struct_size = sizeof to;
  to.trainer_id = id;
  to.device = str("cpu");
  to.dtype = dtype_of<T>();
  to.update = &update_of<R, T>;
  catalog.updates.push_back(catalog.keep(to));
}

}  // namespace detail

template <class R>
void describe(Catalog& catalog, const TrainerSpec& spec, std::string_view file) {
  using detail::str;
  trl_trainer_desc to{};
  to.struct_size = sizeof to;
  to.id = catalog.id(spec.name);
  to.summary = str(spec.summary);
  to.doc = str(spec.doc);
  to.formula = str(spec.formula);
  to.source = str(file);
  catalog.aliases(spec.aliases, to.aliases, to.n_aliases);
  catalog.attrs<R>(to.attrs, to.n_attrs);
  std::vector<const trl_slot_spec*> slots;
  for (const Slot& slot : spec.slots) {
    trl_slot_spec s{};
    s.struct_size = sizeof s;
    s.name = str(slot.name);
    s.doc = str(slot.doc);
    s.init = slot.init;
    slots.push_back(catalog.keep(s));
  }
  to.slots = catalog.keep(slots);
  to.n_slots = static_cast<std::uint16_t>(slots.size());
  to.version = spec.version;
  to.state_version = spec.state_version;
  catalog.trainers.push_back(catalog.keep(to));
  detail::add_update<R, float>(catalog, to.id);
  detail::add_update<R, double>(catalog, to.id);
}

}  // namespace gnu::visibility("hidden")]]v0
}  // namespace trellis::sdk

namespace trellis::ops {
using namespace ::trellis::sdk;  // NOLINT
}
