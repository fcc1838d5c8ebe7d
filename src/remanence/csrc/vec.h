// Vectors of one register and the functions of them that the cells need. Included inside a namespace per instruction
// set, with VECTOR_BYTES and REGISTERS defined there.

#define INLINED __attribute__((always_inline))
#define ALWAYS_INLINE static inline INLINED

// f(0) ... f(N - 1), with constants. An array that is indexed so becomes registers; GCC unrolls a loop too late for that
// and leaves the array in memory as well.
template <class F, int... I> ALWAYS_INLINE void each_of(const F &f, std::integer_sequence<int, I...>) {
  (f(std::integral_constant<int, I>()), ...);
}
template <int N, class F> ALWAYS_INLINE void each(const F &f) { each_of(f, std::make_integer_sequence<int, N>()); }

template <class T> struct Simd;

template <> struct Simd<float> {
  typedef float V __attribute__((vector_size(VECTOR_BYTES)));
  typedef float U __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
  typedef int I __attribute__((vector_size(VECTOR_BYTES)));
  static constexpr int shift = 23, one = 127;
  static constexpr float magic = 12582912.0f;  // adding it rounds to an integer in the low bits
  static constexpr float log2e = 1.44269504088896341f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
  static constexpr float least = -87.0f, most = 88.0f;          // range of exp
  static constexpr float tanh_most = 40.0f;                     // tanh(x) rounds to 1 from 2 x = 40 on
  static constexpr float key_most = 30.0f, query_most = 40.0f;  // see attention.h
  static constexpr float product_most = 1073741824.0f;          // 2^30
  static constexpr float narrow_most = 5.0f;                    // 1 + exp(2 (5 + 5)) < product_most
  static constexpr float score_most = 1.0e10f;                  // score_most product_most^3 is finite
};

template <> struct Simd<double> {
  typedef double V __attribute__((vector_size(VECTOR_BYTES)));
  typedef double U __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));
  typedef long long I __attribute__((vector_size(VECTOR_BYTES)));
  static constexpr int shift = 52;
  static constexpr long long one = 1023;
  static constexpr double magic = 6755399441055744.0;
  static constexpr double log2e = 1.44269504088896340736, ln2_high = 6.93145751953125e-1,
                          ln2_low = 1.42860682030941723212e-6;
  static constexpr double least = -708.0, most = 709.0;
  static constexpr double tanh_most = 80.0;
  static constexpr double key_most = 100.0, query_most = 150.0;
  static constexpr double product_most = 1.0e60;
  static constexpr double narrow_most = 30.0;
  static constexpr double score_most = 1.0e100;
};

template <class T> using Vec = typename Simd<T>::V;
template <class T> constexpr Index WIDTH = VECTOR_BYTES / sizeof(T);

template <class T> static inline Vec<T> load(const T *p) { return *reinterpret_cast<const typename Simd<T>::U *>(p); }
template <class T> static inline void store(T *p, Vec<T> v) { *reinterpret_cast<typename Simd<T>::U *>(p) = v; }
template <class T> static inline Vec<T> all(T x) { return x - Vec<T>{}; }

// A NaN in a stays. One instruction, but GCC makes two of it for 64 bytes.
template <class T> static inline Vec<T> lower(Vec<T> a, Vec<T> b) { return b < a ? b : a; }
template <class T> static inline Vec<T> higher(Vec<T> a, Vec<T> b) { return b > a ? b : a; }
#if VECTOR_BYTES == 64 && defined(__x86_64__) && !defined(__clang__)
template <> inline Vec<float> lower<float>(Vec<float> a, Vec<float> b) {
  return __builtin_ia32_minps512_mask(b, a, a, (unsigned short)-1, 4);
}
template <> inline Vec<float> higher<float>(Vec<float> a, Vec<float> b) {
  return __builtin_ia32_maxps512_mask(b, a, a, (unsigned short)-1, 4);
}
#endif

// Whether a comparison holds in any lane.
template <class T, class M> static inline bool any(M mask) {
  int found = 0;
  for (Index lane = 0; lane < WIDTH<T>; ++lane) found |= mask[lane] != 0;
  return found;
}

// Sum of the lanes, always in the same order: halves are added until 16 bytes are left.
template <class T, int BYTES> static inline T sum_lanes(const T *lane) {
  typedef T Half __attribute__((vector_size(BYTES / 2)));
  Half low, high;
  __builtin_memcpy(&low, lane, sizeof low);
  __builtin_memcpy(&high, lane + BYTES / 2 / sizeof(T), sizeof high);
  low += high;
  if constexpr (BYTES / 2 > sizeof(T)) {
    T rest[BYTES / 2 / sizeof(T)];
    __builtin_memcpy(rest, &low, sizeof low);
    return sum_lanes<T, BYTES / 2>(rest);
  } else {
    return low[0];
  }
}

template <class T> static inline T sum(Vec<T> v) {
  T lane[WIDTH<T>];
  store(lane, v);
  return sum_lanes<T, VECTOR_BYTES>(lane);
}

// The largest lane; halves as in `sum`.
template <class T, int BYTES> static inline T largest_lane(const T *lane) {
  typedef T Half __attribute__((vector_size(BYTES / 2)));
  Half low, high;
  __builtin_memcpy(&low, lane, sizeof low);
  __builtin_memcpy(&high, lane + BYTES / 2 / sizeof(T), sizeof high);
  low = high > low ? high : low;
  if constexpr (BYTES / 2 > sizeof(T)) {
    T rest[BYTES / 2 / sizeof(T)];
    __builtin_memcpy(rest, &low, sizeof low);
    return largest_lane<T, BYTES / 2>(rest);
  } else {
    return low[0];
  }
}

template <class T> static inline T largest(Vec<T> v) {
  T lane[WIDTH<T>];
  store(lane, v);
  return largest_lane<T, VECTOR_BYTES>(lane);
}

// The first `count` lanes of v, and `rest` in the others.
template <class T> static inline Vec<T> first_lanes(Vec<T> v, Index count, T rest) {
  using I = typename Simd<T>::I;
  I number;
  for (int lane = 0; lane < WIDTH<T>; ++lane) number[lane] = lane;
  return number < I{} + decltype(I{}[0] + 0)(count < WIDTH<T> ? count : WIDTH<T>) ? v : all<T>(rest);
}

// The sums of four vectors at once, each in the order of `sum`.
template <class T> static inline void sum_four(const Vec<T> (&v)[4], T *to) {
  for (int i = 0; i < 4; ++i) to[i] = sum<T>(v[i]);
}
#if VECTOR_BYTES == 64
static inline Vec<float> add_halves(Vec<float> a, Vec<float> b) {
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
         __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
}
template <> inline void sum_four<float>(const Vec<float> (&v)[4], float *to) {
  Vec<float> ab = add_halves(v[0], v[1]), cd = add_halves(v[2], v[3]);
  Vec<float> x = __builtin_shufflevector(ab, cd, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
                 __builtin_shufflevector(ab, cd, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  x += __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
  x += __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
  to[0] = x[0], to[1] = x[4], to[2] = x[8], to[3] = x[12];
}
#endif

// exp(r) - 1 for |r| <= ln(2) / 2.
ALWAYS_INLINE Vec<float> exp_core(Vec<float> r) {
  Vec<float> p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return p * (r * r) + r;
}

ALWAYS_INLINE Vec<double> exp_core(Vec<double> r) {
  constexpr double inverse_factorial[] = {1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
                                          1.0 / 720,      1.0 / 120,     1.0 / 24,     1.0 / 6,     1.0 / 2};
  Vec<double> p = r * (1.0 / 6227020800) + 1.0 / 479001600;
  for (double c : inverse_factorial) p = p * r + c;
  return p * (r * r) + r;
}

// x = k ln 2 + r: gives exp(r) - 1 and 2^k.
template <class T> ALWAYS_INLINE Vec<T> exp_parts(Vec<T> x, Vec<T> &power) {
  using S = Simd<T>;
  Vec<T> rounded = x * S::log2e + S::magic;
  Vec<T> k = rounded - S::magic;
  Vec<T> r = (x - k * S::ln2_high) - k * S::ln2_low;
  power = (Vec<T>)(((typename S::I)rounded << S::shift) + (S::one << S::shift));
  return exp_core(r);
}

template <class T> ALWAYS_INLINE Vec<T> exp(Vec<T> x) {
  Vec<T> power, p = exp_parts<T>(lower<T>(higher<T>(x, all<T>(Simd<T>::least)), all<T>(Simd<T>::most)), power);
  return power * p + power;
}

template <class T> ALWAYS_INLINE Vec<T> sigmoid(Vec<T> x) { return T(1) / (T(1) + exp<T>(-x)); }

// Through exp(2 x) - 1, so that small arguments keep their relative precision.
template <class T> ALWAYS_INLINE Vec<T> tanh(Vec<T> x) {
  constexpr T most = Simd<T>::tanh_most;
  Vec<T> power, p = exp_parts<T>(lower<T>(higher<T>(x + x, all<T>(-most)), all<T>(most)), power);
  Vec<T> e = power * p + (power - T(1));
  return e / (e + T(2));
}

template <class T> static inline Vec<T> modrelu(Vec<T> z, Vec<T> bias) {
  Vec<T> size = (z < 0 ? -z : z) + bias;
  size = size < 0 ? Vec<T>{} : size;
  return z < 0 ? -size : z > 0 ? size : z;  // 0 and NaN stay what they are
}

template <class T> static inline T dot(const T *a, const T *b, Index n) {
  Vec<T> total{};
  for (Index j = 0; j < n; j += WIDTH<T>) total += load(a + j) * load(b + j);
  return sum<T>(total);
}

template <class T> static inline void fill(T *p, Index count, T value) {
  for (Index i = 0; i < count; ++i) p[i] = value;
}

template <class T> static inline void copy(T *to, const T *from, Index count) {
  for (Index i = 0; i < count; ++i) to[i] = from[i];
}

// Whole vectors past the caches, for what is not read again soon: lines that are only written need not be fetched first.
#if VECTOR_BYTES == 32 && defined(__x86_64__)
constexpr bool STREAMS = true;
template <class T> static inline void stream(T *to, const T *from, Index count) {
  if (reinterpret_cast<std::uintptr_t>(to) % VECTOR_BYTES) return copy(to, from, count);
  for (Index i = 0; i < count; i += WIDTH<T>)
    __builtin_ia32_movntps256(reinterpret_cast<float *>(to + i), (Vec<float>)load(from + i));
}
static inline void end_stream() { __builtin_ia32_sfence(); }
#else
constexpr bool STREAMS = false;
template <class T> static inline void stream(T *to, const T *from, Index count) { copy(to, from, count); }
static inline void end_stream() {}
#endif

// A row of n numbers into one padded to np, and back.
template <class T> static inline void widen(T *to, const T *from, Index n, Index np) {
  copy(to, from, n);
  fill(to + n, np - n, T(0));
}
