// SPDX-License-Identifier: Apache-2.0
//
// Initializers: fill a new parameter.
//
//   struct Uniform {
//     struct Attrs { double left = -1, right = 1; };
//     static constexpr auto attrs = fields(field("left", &Attrs::left, "lower end"),
//                                          field("right", &Attrs::right, "upper end"));
//     static constexpr InitializerSpec spec{.name = "uniform",
//                                           .summary = "uniform in [left, right)"};
//     static void fill(const Attrs& a, const auto& f) {
//       f.random().uniform(f.data(), f.size(), f.number(a.left), f.number(a.right));
//     }
//   };
#pragma once

#include <trellis/abi/initializer.h>

#include <cstdint>
#include <string_view>
#include <trellis/sdk/plugin.hpp>
#include <trellis/sdk/random.hpp>
#include <trellis/sdk/tensor.hpp>

namespace trellis::sdk {
inline namespace [[gnu::visibility("hidden")]] v0 {

struct InitializerSpec {
  std::string_view name{}, summary{}, doc{}, formula{};
  List<std::string_view, 6> aliases{};
  bool is_default = false;  // used where a parameter names none; one in a runtime
  std::uint32_t version = 1;
};

// What is to be filled; T is float or double.
template <class T>
class Fill {
 public:
  explicit Fill(const trl_fill_args& args) : args_(args) {}

  Tensor<T> value() const { return Tensor<T>(*args_.value); }
  T* data() const { return value().data(); }
  std::uint64_t size() const { return value().total(); }
  Dim dim() const { return args_.value->dim; }  // lookup tables: the last dimension counts rows
  bool lookup() const { return args_.lookup != 0; }
  std::uint64_t fan_in() const { return args_.fan_in; }
  std::uint64_t fan_out() const { return args_.fan_out; }
  // Numbers that depend on the seed and the parameter's name only.
  Random random() const { return Random(args_.stream); }
  static T number(double v) { return static_cast<T>(v); }

 private:
  const trl_fill_args& args_;
};

namespace detail {

template <class I>
trl_status fill_of(const trl_fill_args* args) {
  return guard(args->call, I::spec.name, [args] {
    const auto run = [&]<class T>(const Fill<T>& f) {
      if constexpr (HasAttrs<I>)
        I::fill(read_attrs<I>(args->attrs), f);
      else
        I::fill(f);
    };
    if (args->value->dtype == TRL_F32)
      run(Fill<float>(*args));
    else if (args->value->dtype == TRL_F64)
      run(Fill<double>(*args));
    else
      fail(TRL_E_DTYPE, "fills f32 and f64: the parameter has dtype ", args->value->dtype);
  });
}

}  // namespace detail

template <class I>
void describe(Catalog& catalog, const InitializerSpec& spec, std::string_view file) {
  using detail::str;
  trl_initializer_desc to{};
  to.struct_size = sizeof to;
  to.flags = detail::flag(spec.is_default, TRL_INIT_DEFAULT);
  to.id = catalog.id(spec.name);
  to.summary = str(spec.summary);
  to.doc = str(spec.doc);
  to.formula = str(spec.formula);
  to.source = str(file);
  catalog.aliases(spec.aliases, to.aliases, to.n_aliases);
  catalog.attrs<I>(to.attrs, to.n_attrs);
  to.version = spec.version;
  to.fill = &detail::fill_of<I>;
  catalog.initializers.push_back(catalog.keep(to));
}

}  // namespace gnu::visibility("hidden")]]v0
}  // namespace trellis::sdk

namespace trellis::ops {
using namespace ::trellis::sdk;  // NOLINT
}
