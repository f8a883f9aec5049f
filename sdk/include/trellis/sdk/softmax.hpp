// SPDX-License-Identifier: Apache-2.0
//
// Softmax builders: output layers as macros on graph level. A struct with a SoftmaxSpec, `uses`,
// params(a) as for builders and
//   static Expr loss(const Attrs& a, const auto& s)      -log p(ids | h), one scalar per example;
//   pass s.ids() on static Expr scores(const Attrs& a, const auto& s)    log-probabilities of all
//   classes static Expr sample(const Attrs& a, const auto& s)    optional: an i64 node
#pragma once

#include <trellis/abi/softmax.h>

#include <cstdint>
#include <string_view>
#include <trellis/sdk/graph.hpp>
#include <trellis/sdk/params.hpp>
#include <trellis/sdk/plugin.hpp>

namespace trellis::sdk {
inline namespace [[gnu::visibility("hidden")]] v0 {

struct SoftmaxSpec {
  std::string_view name{}, summary{}, doc{};
  List<std::string_view, 6> aliases{};
  std::uint32_t version = 1;
};

template <class S>
class SoftmaxCall : public GraphCall<S> {
 public:
  explicit SoftmaxCall(const trl_softmax_args& args) : GraphCall<S>(args.call), args_(args) {}

  Expr h() const { return args_.h; }
  Expr param(std::uint32_t i) const { return args_.params[i]; }
  const trl_attr& ids() const { return *args_.ids; }  // loss only; to pass on
  Ids id_values() const {
    return Ids(args_.ids->v.is, args_.ids->offsets);
  }  // loss only; to look at

 private:
  const trl_softmax_args& args_;
};

namespace detail {

template <class S>
trl_status softmax_n_params_of(trl_call* call, const trl_attr* attrs, std::uint32_t,
                               std::uint32_t* out) {
  return guard(call, S::spec.name,
               [&] { *out = static_cast<std::uint32_t>(S::params(read_attrs<S>(attrs)).size()); });
}
template <class S>
trl_status softmax_loss_of(const trl_softmax_args* args) {
  return guard(args->call, S::spec.name,
               [&] { *args->out = S::loss(read_attrs<S>(args->attrs), SoftmaxCall<S>(*args)); });
}
template <class S>
trl_status softmax_scores_of(const trl_softmax_args* args) {
  return guard(args->call, S::spec.name,
               [&] { *args->out = S::scores(read_attrs<S>(args->attrs), SoftmaxCall<S>(*args)); });
}
template <class S>
trl_status softmax_sample_of(const trl_softmax_args* args) {
  return guard(args->call, S::spec.name,
               [&] { *args->out = S::sample(read_attrs<S>(args->attrs), SoftmaxCall<S>(*args)); });
}

}  // namespace detail

template <class S>
void describe(Catalog& catalog, const SoftmaxSpec& spec, std::string_view file) {
  using detail::str;
  trl_softmax_desc to{};
  to.struct_size = sizeof to;
  to.id = catalog.id(spec.name);
  to.summary = str(spec.summary);
  to.doc = str(spec.doc);
  to.source = str(file);
  catalog.aliases(spec.aliases, to.aliases, to.n_aliases);
  catalog.attrs<S>(to.attrs, to.n_attrs);
  catalog.uses<S>();
  to.version = spec.version;
  to.n_params = &detail::softmax_n_params_of<S>;
  to.param = &detail::param_of<S>;
  to.loss = &detail::softmax_loss_of<S>;
  to.scores = &detail::softmax_scores_of<S>;
  using A = typename detail::AttrsOf<S>::type;
  if constexpr (requires(const A& a, const SoftmaxCall<S>& s) { S::sample(a, s); })
    to.sample = &detail::softmax_sample_of<S>;
  catalog.softmaxes.push_back(catalog.keep(to));
}

}  // namespace gnu::visibility("hidden")]]v0
}  // namespace trellis::sdk

namespace trellis::ops {
using namespace ::trellis::sdk;  // NOLINT
}
