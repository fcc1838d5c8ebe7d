// The read of a buffer: softmax over scores of keys, weighted sum of values, and its backward pass.
//
// Additive score: v . tanh(q + k). Since tanh(a + b) = 1 - 2 / (1 + exp(2 a) exp(2 b)), a key is stored as exp(2 k) and
// the inner loop needs no tanh. This is exact to rounding if all |k| <= key_most: then q may be clamped to query_most,
// because tanh(q + k) has rounded to +-1 there. A key with a larger entry is "wide": it is stored as k itself, and its
// scores take the tanh. Four reciprocals cost one division: 1/a = bcd / abcd; 1 + exp(2 (q + k)) is clamped to
// product_most first, where tanh has rounded to 1, so that the product of four stays finite.
// All scores are less by sum(v), which softmax does not see.

template <class T> struct Read {
  Index count, np;
  const T *const *keys, *const *values;  // count pointers to (np)
  const uint8_t *wide;                   // (count)
  const T *q, *eq, *v;                   // query, exp(2 q) clamped, score weights: (np)
  int score;
  T scale;                               // DOT
};

template <class T> static void query_exponential(T *eq, const T *q, Index np) {
  constexpr T most = Simd<T>::query_most;
  for (Index j = 0; j < np; j += WIDTH<T>) {
    Vec<T> x = lower<T>(higher<T>(load(q + j), all<T>(-most)), all<T>(most));
    store(eq + j, exp<T>(x + x));
  }
}

// Puts a key into its stored form, in place; tells whether it is wide.
template <class T> static bool encode_key(T *key, Index np) {
  constexpr T most = Simd<T>::key_most;
  Vec<T> widest{};
  for (Index j = 0; j < np; j += WIDTH<T>) {
    Vec<T> k = load(key + j);
    widest = higher<T>(widest, k < 0 ? -k : k);
  }
  for (Index lane = 0; lane < WIDTH<T>; ++lane)
    if (widest[lane] > most) return true;
  for (Index j = 0; j < np; j += WIDTH<T>) {
    Vec<T> k = load(key + j);
    store(key + j, exp<T>(k + k));
  }
  return false;
}

// 1 / (1 + eq ek) for four keys at once.
template <class T> static inline __attribute__((always_inline)) void reciprocals(Vec<T> eq, const T *const *key,
                                                                                 Index j, Vec<T> (&r)[4]) {
  const Vec<T> most = all<T>(Simd<T>::product_most);
  Vec<T> d[4];
  for (int i = 0; i < 4; ++i) d[i] = lower<T>(eq * load(key[i] + j) + T(1), most);
  Vec<T> d01 = d[0] * d[1], d23 = d[2] * d[3], one = T(1) / (d01 * d23);
  Vec<T> r01 = one * d23, r23 = one * d01;
  r[0] = r01 * d[1], r[1] = r01 * d[0], r[2] = r23 * d[3], r[3] = r23 * d[2];
}

// What the backward pass wants beside the scores.
template <class T> struct Kept {
  const T *dr;  // (np)
  T *bent;      // (4, np): the tanh values
  T *dz;        // (4): dr . value
};

// Scores of four keys; with `keep` also what the backward pass wants.
template <class T, bool keep>
static void score_four(const Read<T> &read, const T *const *key, const T *const *value, T *score, const Kept<T> &kept) {
  Vec<T> total[4] = {}, dz[4] = {};
  for (Index j = 0; j < read.np; j += WIDTH<T>) {
    Vec<T> r[4], v = load(read.v + j);
    reciprocals<T>(load(read.eq + j), key, j, r);
    for (int i = 0; i < 4; ++i) total[i] += v * r[i];
    if (!keep) continue;
    Vec<T> dr = load(kept.dr + j);
    for (int i = 0; i < 4; ++i) {
      store(kept.bent + i * read.np + j, T(1) - T(2) * r[i]);
      dz[i] += dr * load(value[i] + j);
    }
  }
  sum_four<T>(total, score);
  for (int i = 0; i < 4; ++i) score[i] *= T(-2);
  if (keep) sum_four<T>(dz, kept.dz);
}

// Score of one key, where one of its group is wide.
template <class T, bool keep> static T score_one(const Read<T> &read, const T *key, bool wide, T *bent) {
  Vec<T> total{};
  for (Index j = 0; j < read.np; j += WIDTH<T>) {
    Vec<T> k = load(key + j), less;  // tanh(q + k) - 1
    if (wide)
      less = tanh<T>(load(read.q + j) + k) - T(1);
    else
      less = T(-2) / lower<T>(load(read.eq + j) * k + T(1), all<T>(Simd<T>::product_most));
    total += load(read.v + j) * less;
    if (keep) store(bent + j, less + T(1));
  }
  return sum<T>(total);
}

// Scores of slots i .. i + m - 1, m <= 4.
template <class T, bool keep>
static void score_group(const Read<T> &read, Index i, int m, T *score, const Kept<T> &kept) {
  const T *key[4], *value[4];
  bool wide = false;
  for (int g = 0; g < 4; ++g) {
    Index slot = i + (g < m ? g : m - 1);
    key[g] = read.keys[slot], value[g] = read.values[slot], wide |= read.wide[slot] != 0;
  }
  if (!wide) return score_four<T, keep>(read, key, value, score, kept);
  for (int g = 0; g < m; ++g) {
    score[g] = score_one<T, keep>(read, key[g], read.wide[i + g], keep ? kept.bent + g * read.np : nullptr);
    if (keep) kept.dz[g] = dot(kept.dr, value[g], read.np);
  }
}

// What turns scores into weights again: exp(score - most) / total. (One number, log sum exp, would round too coarsely.)
template <class T> struct Softmax {
  T most, total;
};

// z (count, room up to a multiple of the vector) holds scores and becomes weights.
template <class T> static Softmax<T> softmax(T *z, Index count) {
  constexpr Index W = WIDTH<T>;
  T most = z[0];
  for (Index i = 1; i < count; ++i) most = z[i] > most ? z[i] : most;
  for (Index i = count; i % W; ++i) z[i] = most;
  Vec<T> total{};
  for (Index i = 0; i < count; i += W) {
    Vec<T> e = exp<T>(load(z + i) - most);
    store(z + i, e);
    if (i + W <= count) total += e;
  }
  T rest = 0;
  for (Index i = count / W * W; i < count; ++i) rest += z[i];
  T all_of = sum<T>(total) + rest;
  for (Index i = 0; i < count; ++i) z[i] /= all_of;
  return {most, all_of};
}

// result[j ...] = sum_i z_i value_i[j ...] over C vectors
template <class T, int C> static void weighted_columns(const Read<T> &read, const T *z, T *result, Index j) {
  constexpr Index W = WIDTH<T>;
  Vec<T> total[C] = {};
  for (Index i = 0; i < read.count; ++i)
    for (int c = 0; c < C; ++c) total[c] += z[i] * load(read.values[i] + j + c * W);
  for (int c = 0; c < C; ++c) store(result + j + c * W, total[c]);
}

template <class T> static void weighted_sum(const Read<T> &read, const T *z, T *result) {
  constexpr Index W = WIDTH<T>;
  Index j = 0;
  for (; j + 8 * W <= read.np; j += 8 * W) weighted_columns<T, 8>(read, z, result, j);
  for (; j + 4 * W <= read.np; j += 4 * W) weighted_columns<T, 4>(read, z, result, j);
  for (; j < read.np; j += W) weighted_columns<T, 1>(read, z, result, j);
}

template <class T> static Softmax<T> read_forward(const Read<T> &read, T *z, T *result) {
  if (read.score == DOT)
    for (Index i = 0; i < read.count; ++i) z[i] = read.scale * dot(read.q, read.keys[i], read.np);
  else
    for (Index i = 0; i < read.count; i += 4) {
      T score[4];
      int m = int(read.count - i < 4 ? read.count - i : 4);
      score_group<T, false>(read, i, m, score, {});
      for (int g = 0; g < m; ++g) z[i + g] = score[g];
    }
  Softmax<T> norm = softmax(z, read.count);
  weighted_sum(read, z, result);
  return norm;
}

template <class T> struct ReadBack {
  const T *dr;         // (np): gradient of the result
  Softmax<T> norm;     // of the forward pass
  T *const *sums;      // count pointers to (2, np): gradients of value and key, added to
  T *dq, *dv;          // (np), added to
  T *bent, *z, *de;    // scratch: (count + 3, np), and two of count and room up to a multiple of the vector
};

template <class T, int M>
static void spread_additive(const Read<T> &read, const ReadBack<T> &back, Index i) {
  Index np = read.np;
  const T *z = back.z + i, *de = back.de + i, *bent = back.bent + i * np;
  for (Index j = 0; j < np; j += WIDTH<T>) {
    Vec<T> dr = load(back.dr + j), v = load(read.v + j), dq = load(back.dq + j), dv = load(back.dv + j);
    for (int g = 0; g < M; ++g) {
      T *sums = back.sums[i + g];
      Vec<T> t = load(bent + g * np + j), dk = de[g] * (v - v * t * t);
      dq += dk, dv += de[g] * t;
      store(sums + j, load(sums + j) + z[g] * dr);
      store(sums + np + j, load(sums + np + j) + dk);
    }
    store(back.dq + j, dq), store(back.dv + j, dv);
  }
}

template <class T> static void spread_dot(const Read<T> &read, const ReadBack<T> &back, Index i) {
  T *sums = back.sums[i], z = back.z[i], de = read.scale * back.de[i];
  for (Index j = 0; j < read.np; j += WIDTH<T>) {
    store(back.dq + j, load(back.dq + j) + de * load(read.keys[i] + j));
    store(sums + j, load(sums + j) + z * load(back.dr + j));
    store(sums + read.np + j, load(sums + read.np + j) + de * load(read.q + j));
  }
}

// z holds scores and de the gradients of the weights; z becomes the weights and de the gradients of the scores.
// The mean is taken with these very weights, so that the gradients of the scores sum to zero to rounding.
template <class T> static void score_gradients(const Read<T> &read, const ReadBack<T> &back) {
  constexpr Index W = WIDTH<T>;
  T mean = 0;
  for (Index i = read.count; i % W; ++i) back.z[i] = back.norm.most;
  for (Index i = 0; i < read.count; i += W)
    store(back.z + i, exp<T>(load(back.z + i) - back.norm.most) / back.norm.total);
  for (Index i = 0; i < read.count; ++i) mean += back.z[i] * back.de[i];
  for (Index i = 0; i < read.count; ++i) back.de[i] = back.z[i] * (back.de[i] - mean);
}

// Scores and weights are computed again from the keys.
template <class T> static void read_backward(const Read<T> &read, const ReadBack<T> &back) {
  for (Index i = 0; i < read.count; i += 4) {
    T score[4], dz[4];
    int m = int(read.count - i < 4 ? read.count - i : 4);
    if (read.score != DOT) score_group<T, true>(read, i, m, score, {back.dr, back.bent + i * read.np, dz});
    for (int g = 0; g < m && read.score == DOT; ++g) {
      score[g] = read.scale * dot(read.q, read.keys[i + g], read.np);
      dz[g] = dot(back.dr, read.values[i + g], read.np);
    }
    for (int g = 0; g < m; ++g) back.z[i + g] = score[g], back.de[i + g] = dz[g];
  }
  score_gradients(read, back);
  Index i = 0;
  if (read.score == DOT)
    for (; i < read.count; ++i) spread_dot(read, back, i);
  for (; i + 4 <= read.count; i += 4) spread_additive<T, 4>(read, back, i);
  for (; i < read.count; ++i) spread_additive<T, 1>(read, back, i);
}
