// SPDX-License-Identifier: Apache-2.0
//
// Several elements at a time: Eigen's packets with operators, and functions on them that are right
// in every special case (NaN passes, infinities have their limits). Relative errors: about 2e-7 for
// f32, below 1e-14 for f64.
//
//   map(x, y, simd::wide([](auto v) { return simd::tanh(v); }));
#pragma once

#define EIGEN_FAST_MATH 0  // its fast square root makes NaN of infinity
#include <Eigen/Core>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>

namespace trellis::ops::simd {

namespace packet = Eigen::internal;

template <class T>
struct Mask;

// As many elements as the CPU level's registers hold.
template <class T>
struct Vec {
  using Packet = typename packet::packet_traits<T>::type;
  static constexpr std::uint64_t size = packet::unpacket_traits<Packet>::size;

  Packet v;

  Vec(const Packet& p) : v(p) {}
  template <class N>
  requires std::is_arithmetic_v<N> Vec(N number)
      : v(packet::pset1<Packet>(static_cast<T>(number))) {}

  static Vec load(const T* p) { return packet::ploadu<Packet>(p); }
  void store(T* p) const { packet::pstoreu(p, v); }
  // The first n of them, n < size; the others read as 0.
  static Vec load_part(const T* p, std::uint64_t n) {
    // A number that was just stored is at hand only for a load of its own size.
#if defined(__AVX512F__)
    if (n == 1) {
      if constexpr (sizeof(T) == 4)
        return _mm512_zextps128_ps512(_mm_load_ss(p));
      else
        return _mm512_zextpd128_pd512(_mm_load_sd(p));
    }
    if constexpr (sizeof(T) == 4)
      return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p);
    else
      return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << n) - 1), p);
#elif defined(__AVX__)
    if (n == 1) {
      if constexpr (sizeof(T) == 4)
        return _mm256_zextps128_ps256(_mm_load_ss(p));
      else
        return _mm256_zextpd128_pd256(_mm_load_sd(p));
    }
    if constexpr (sizeof(T) == 4)
      return _mm256_maskload_ps(p, first(n));
    else
      return _mm256_maskload_pd(p, first(n));
#else
    T part[size] = {};
    for (std::uint64_t i = 0; i < n; ++i) part[i] = p[i];
    return load(part);
#endif
  }
  void store_part(T* p, std::uint64_t n) const {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4)
      _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), v);
    else
      _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1u << n) - 1), v);
#elif defined(__AVX__)
    // Not a masked store: some processors run that one as a long micro-programme.
    if constexpr (sizeof(T) == 4) {
      __m128 rest = _mm256_castps256_ps128(v);
      if (n & 4) {
        _mm_storeu_ps(p, rest);
        rest = _mm256_extractf128_ps(v, 1);
        p += 4;
      }
      if (n & 2) {
        _mm_storel_pi(reinterpret_cast<__m64*>(p), rest);
        rest = _mm_movehl_ps(rest, rest);
        p += 2;
      }
      if (n & 1) _mm_store_ss(p, rest);
    } else {
      __m128d rest = _mm256_castpd256_pd128(v);
      if (n & 2) {
        _mm_storeu_pd(p, rest);
        rest = _mm256_extractf128_pd(v, 1);
        p += 2;
      }
      if (n & 1) _mm_store_sd(p, rest);
    }
#else
    T part[size];
    store(part);
    for (std::uint64_t i = 0; i < n; ++i) p[i] = part[i];
#endif
  }
  friend Vec operator+(const Vec& a, const Vec& b) { return packet::padd(a.v, b.v); }
  friend Vec operator-(const Vec& a, const Vec& b) { return packet::psub(a.v, b.v); }
  friend Vec operator*(const Vec& a, const Vec& b) { return packet::pmul(a.v, b.v); }
  friend Vec operator/(const Vec& a, const Vec& b) { return packet::pdiv(a.v, b.v); }
  friend Vec operator-(const Vec& a) { return packet::pnegate(a.v); }
  friend Mask<T> operator<(const Vec& a, const Vec& b) { return {packet::pcmp_lt(a.v, b.v)}; }
  friend Mask<T> operator<=(const Vec& a, const Vec& b) { return {packet::pcmp_le(a.v, b.v)}; }
  friend Mask<T> operator>(const Vec& a, const Vec& b) { return b < a; }
  friend Mask<T> operator>=(const Vec& a, const Vec& b) { return b <= a; }
  friend Mask<T> operator==(const Vec& a, const Vec& b) { return {packet::pcmp_eq(a.v, b.v)}; }

 private:
#if defined(__AVX__) && !defined(__AVX512F__)
  // All bits in the first n elements.
  static __m256i first(std::uint64_t n) {
    alignas(32) static constexpr std::int32_t kOnes[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    const std::int32_t* from = kOnes + 8 - n * (sizeof(T) / 4);
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
#endif
};

template <class T>
struct Mask {
  typename Vec<T>::Packet v;
  friend Mask operator&(const Mask& a, const Mask& b) { return {packet::pand(a.v, b.v)}; }
  friend Mask operator|(const Mask& a, const Mask& b) { return {packet::por(a.v, b.v)}; }
  bool any() const { return packet::predux_any(v); }
};

// A function object that the loops of the SDK call with Vec.
template <class F>
struct Wide : F {
  template <class T>
  using pack = Vec<T>;
  using F::operator();
};
template <class F>
Wide<F> wide(F f) {
  return {f};
}

// Where the mask holds a, else b. Plain numbers mean splats.
template <class T>
Vec<T> select(const Mask<T>& where, const std::type_identity_t<Vec<T>>& a,
              const std::type_identity_t<Vec<T>>& b) {
  return packet::pselect(where.v, a.v, b.v);
}
template <class T>
Vec<T> fma(const Vec<T>& a, const std::type_identity_t<Vec<T>>& b,
           const std::type_identity_t<Vec<T>>& c) {
  return packet::pmadd(a.v, b.v, c.v);
}
template <class T>
Vec<T> abs(const Vec<T>& x) {
  return packet::pabs(x.v);
}
template <class T>
Vec<T> sqrt(const Vec<T>& x) {
  return packet::psqrt(x.v);
}
template <class T>
Vec<T> floor(const Vec<T>& x) {
  return packet::pfloor(x.v);
}
template <class T>
Vec<T> round(const Vec<T>& x) {
  return packet::pround(x.v);
}
// -1, 0 or 1; NaN passes.
template <class T>
Vec<T> sign(const Vec<T>& x) {
  return select(x > Vec<T>(0), 1, select(x < Vec<T>(0), -1, x * Vec<T>(0)));
}
// 0 where x is 0 or less, else 1.
template <class T>
Vec<T> step(const Vec<T>& x) {
  return select(x <= Vec<T>(0), 0, 1);
}
// The larger; b where one is NaN.
template <class T>
Vec<T> max(const Vec<T>& a, const std::type_identity_t<Vec<T>>& b) {
  return select(a > b, a, b);
}
template <class T>
Vec<T> min(const Vec<T>& a, const std::type_identity_t<Vec<T>>& b) {
  return select(a < b, a, b);
}

namespace detail {

// c[0] x^(n-1) + ... + c[n-1]
template <class T, std::size_t N>
Vec<T> polynomial(const Vec<T>& x, const double (&c)[N]) {
  Vec<T> y(c[0]);
  for (std::size_t i = 1; i < N; ++i) y = fma(y, x, Vec<T>(c[i]));
  return y;
}
// Calls f for each element: for arguments so rare that speed does not matter.
template <class T, class F>
Vec<T> each(const Vec<T>& x, F f) {
  T v[Vec<T>::size];
  x.store(v);
  for (T& e : v) e = f(e);
  return Vec<T>::load(v);
}

}  // namespace detail

template <class T>
Vec<T> exp(const Vec<T>& x) {
  const Vec<T> lowest(sizeof(T) == 4 ? -87.33 : -708.39);  // below: no normal number
  return select(x < lowest, 0, Vec<T>(packet::pexp(x.v)));
}
template <class T>
Vec<T> log(const Vec<T>& x) {
  return packet::plog(x.v);
}
// log(1 + x), accurate near 0.
template <class T>
Vec<T> log1p(const Vec<T>& x) {
  const Vec<T> u = x + 1;
  const Vec<T> exact = log(u) * (x / (u - 1));  // makes up for what 1 + x has rounded away
  const Vec<T> infinity(std::numeric_limits<T>::infinity());
  return select(u == Vec<T>(1), x, select(u == infinity, infinity, exact));
}

template <class T>
Vec<T> tanh(const Vec<T>& x) {
  if constexpr (sizeof(T) == 4) {
    return packet::ptanh(x.v);
  } else {
    // Cephes: a rational function below 0.625, the exponential above.
    static constexpr double kP[] = {-9.64399179425052238628E-1, -9.92877231001918586564E1,
                                    -1.61468768441708447952E3};
    static constexpr double kQ[] = {1.0, 1.12811678491632931402E2, 2.23548839060100448583E3,
                                    4.84406305325125486048E3};
    const Vec<T> z = x * x, a = abs(x);
    const Vec<T> near = x + x * z * detail::polynomial(z, kP) / detail::polynomial(z, kQ);
    const Vec<T> tail = 1 - 2 / (exp(2 * a) + 1);
    return select(a < Vec<T>(0.625), near, select(x < Vec<T>(0), -tail, tail));
  }
}
// exp(x) - 1, accurate near 0.
template <class T>
Vec<T> expm1(const Vec<T>& x) {
  const Vec<T> t = tanh(x * T(0.5));
  return select(abs(x) < Vec<T>(0.5), 2 * t / (1 - t), exp(x) - 1);
}
template <class T>
Vec<T> sinh(const Vec<T>& x) {
  const Vec<T> e = expm1(abs(x));
  const Vec<T> y = T(0.5) * (e + e / (e + 1)), infinity(std::numeric_limits<T>::infinity());
  const Vec<T> positive = select(e == infinity, e, y);
  return select(x < Vec<T>(0), -positive, positive);
}
template <class T>
Vec<T> cosh(const Vec<T>& x) {
  const Vec<T> e = exp(abs(x));
  return T(0.5) * (e + 1 / e);
}
template <class T>
Vec<T> sigmoid(const Vec<T>& x) {
  return 1 / (1 + exp(-x));
}
// log(1 + exp(x))
template <class T>
Vec<T> softplus(const Vec<T>& x) {
  return select(x > Vec<T>(0), x, x * Vec<T>(0)) + log1p(exp(-abs(x)));
}

template <class T>
Vec<T> erf(const Vec<T>& x) {
  // Cephes: x T(x^2) / U(x^2) up to 1, one minus exp(-x^2) P(|x|) / Q(|x|) above.
  static constexpr double kT[] = {9.60497373987051638749E0, 9.00260197203842689217E1,
                                  2.23200534594684319226E3, 7.00332514112805075473E3,
                                  5.55923013010394962768E4};
  static constexpr double kU[] = {1.0,
                                  3.35617141647503099647E1,
                                  5.21357949780152679795E2,
                                  4.59432382970980127987E3,
                                  2.26290000613890934246E4,
                                  4.92673942608635921086E4};
  static constexpr double kP[] = {
      2.46196981473530512524E-10, 5.64189564831068821977E-1, 7.46321056442269912687E0,
      4.86371970985681366614E1,   1.96520832956077098242E2,  5.26445194995477358631E2,
      9.34528527171957607540E2,   1.02755188689515710272E3,  5.57535335369399327526E2};
  static constexpr double kQ[] = {1.0,
                                  1.32281951154744992508E1,
                                  8.67072140885989742329E1,
                                  3.54937778887819891062E2,
                                  9.75708501743205489753E2,
                                  1.82390916687909736289E3,
                                  2.24633760818710981792E3,
                                  1.65666309194161350182E3,
                                  5.57535340817727675546E2};
  const Vec<T> z = x * x;
  const Vec<T> near = x * detail::polynomial(z, kT) / detail::polynomial(z, kU);
  const Vec<T> a = min(abs(x), Vec<T>(6.5));  // erf is 1 from there on
  const Vec<T> tail = 1 - exp(-a * a) * detail::polynomial(a, kP) / detail::polynomial(a, kQ);
  const Vec<T> far = select(x < Vec<T>(0), -tail, tail);
  return select(z <= Vec<T>(1), near, select(x == x, far, x));
}

namespace detail {

// Cephes for f64: the argument minus a multiple of pi/4, a polynomial per octant.
template <bool kSine>
Vec<double> sin_cos(const Vec<double>& x) {
  using V = Vec<double>;
  static constexpr double kSin[] = {1.58962301576546568060E-10, -2.50507477628578072866E-8,
                                    2.75573136213857245213E-6,  -1.98412698295895385996E-4,
                                    8.33333333332211858878E-3,  -1.66666666666666307295E-1};
  static constexpr double kCos[] = {-1.13585365213876817300E-11, 2.08757008419747316778E-9,
                                    -2.75573141792967388112E-7,  2.48015872888517045348E-5,
                                    -1.38888888888730564116E-3,  4.16666666666665929218E-2};
  const V a = abs(x);
  if ((a > V(1e8)).any())
    return each(x, [](double e) { return kSine ? std::sin(e) : std::cos(e); });
  // The nearest multiple of pi/2, and the quadrant it is in.
  const V n = round(a * V(0.63661977236758134308));
  const V quadrant = n - 4 * floor(n * V(0.25));
  const V r =
      fma(n, V(-2 * 2.69515142907905952645E-15),
          fma(n, V(-2 * 3.77489470793079817668E-8), fma(n, V(-2 * 7.85398125648498535156E-1), a)));
  const V z = r * r;
  const V sine = fma(r * z, polynomial(z, kSin), r);
  const V cosine = fma(z * z, polynomial(z, kCos), fma(z, V(-0.5), V(1)));
  const Mask<double> odd = (quadrant == V(1)) | (quadrant == V(3));
  if constexpr (kSine) {
    const V y = select(odd, cosine, sine);
    const V turned = select(quadrant > V(1), -y, y);
    return select(x < V(0), -turned, turned);
  } else {
    const V y = select(odd, sine, cosine);
    return select((quadrant == V(1)) | (quadrant == V(2)), -y, y);
  }
}

}  // namespace detail

template <class T>
Vec<T> sin(const Vec<T>& x) {
  if constexpr (sizeof(T) == 4)
    return packet::psin(x.v);
  else
    return detail::sin_cos<true>(x);
}
template <class T>
Vec<T> cos(const Vec<T>& x) {
  if constexpr (sizeof(T) == 4)
    return packet::pcos(x.v);
  else
    return detail::sin_cos<false>(x);
}

}  // namespace trellis::ops::simd
