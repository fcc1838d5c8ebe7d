// The read of a buffer: softmax over scores of keys, weighted sum of values, and its backward pass.
//
// Additive score: v . tanh(q + k). Since tanh(a + b) = 1 - 2 / (1 + exp(2 a) exp(2 b)), a key is stored as exp(2 k) and
// the inner loop needs no tanh. This is exact to rounding if all |k| <= key_most: then q may be clamped to query_most,
// because tanh(q + k) has rounded to +-1 there. A key with a larger entry is "wide": it is stored as k itself, and its
// scores take the tanh. Four terms of a score cost one division: v1/d1 + v2/d2 = (v1 d2 + v2 d1) / (d1 d2), and so on;
// d = 1 + exp(2 (q + k)) is clamped to product_most first, where tanh has rounded to 1, so that the product of four stays
// finite. Where neither query nor key has an entry beyond narrow_most, as is usual, there is nothing to clamp. Weights v
// beyond score_most take the terms one by one.
// All scores are less by sum(v), which softmax does not see.

enum Width : uint8_t { NARROW, USUAL, WIDE };  // of a query or a key, by its largest entry

template <class T> static Width width_of(const T *row, Index np) {
  Vec<T> most{};
  for (Index j = 0; j < np; j += WIDTH<T>) {
    Vec<T> x = load(row + j);
    most = higher<T>(most, x < 0 ? -x : x);
  }
  if (!any<T>(most > Simd<T>::narrow_most)) return NARROW;
  return any<T>(most > Simd<T>::key_most) ? WIDE : USUAL;
}

template <class T> static Width query_exponential(T *eq, const T *q, Index np) {
  constexpr T most = Simd<T>::query_most;
  for (Index j = 0; j < np; j += WIDTH<T>) {
    Vec<T> x = lower<T>(higher<T>(load(q + j), all<T>(-most)), all<T>(most));
    store(eq + j, exp<T>(x + x));
  }
  return width_of(q, np);
}

// A state in memory: where its value and its key are; backward also where their gradients gather.
template <class T> struct Held {
  const T *value, *key;  // (np)
  T *sums;               // (2, np): of value and key; ADDITIVE: key without 4 v
  Index wide;            // Width of the key
};

template <class T> struct Read {
  Index count, np;
  const Held<T> *held;   // (count)
  const T *q, *eq, *v;   // query, exp(2 q) clamped, score weights: (np)
  int score, width;      // width: of the query
  bool steep;            // some score weight exceeds score_most
  T scale;               // DOT

  // The question; eq (np) takes the exponential of the query.
  void ask(const Spec &spec, Index n, const T *query, T *exponential, const Plan<T> &plan) {
    q = query, eq = exponential, v = plan.score, steep = plan.steep, score = spec.score;
    scale = score == DOT ? T(1 / __builtin_sqrt(double(n))) : T(1);
    width = score == ADDITIVE ? query_exponential(exponential, query, np) : USUAL;
  }
};

// Puts a key into its stored form, in place; tells how wide it is.
template <class T> static Width encode_key(T *key, Index np) {
  Width width = width_of(key, np);
  for (Index j = 0; j < np && width != WIDE; j += WIDTH<T>) {
    Vec<T> k = load(key + j);
    store(key + j, exp<T>(k + k));
  }
  return width;
}

// 1 + eq ek, clamped where that may be needed.
template <class T, int wide> ALWAYS_INLINE Vec<T> divisor(Vec<T> eq, Vec<T> key) {
  Vec<T> d = eq * key + T(1);
  return wide == NARROW ? d : lower<T>(d, all<T>(Simd<T>::product_most));
}

// 1 / (1 + eq ek) for four keys at once. In wide vectors a division costs more than the products that save three of them.
template <class T, int wide>
ALWAYS_INLINE void reciprocals(Vec<T> eq, const T *const *key, Index j, Vec<T> (&r)[4]) {
  Vec<T> d[4];
  each<4>([&](auto i) INLINED { d[i] = divisor<T, wide>(eq, load(key[i] + j)); });
  if constexpr (VECTOR_BYTES < 64) {
    each<4>([&](auto i) INLINED { r[i] = T(1) / d[i]; });
  } else {
    Vec<T> d01 = d[0] * d[1], d23 = d[2] * d[3], one = T(1) / (d01 * d23), r01 = one * d23, r23 = one * d01;
    r[0] = r01 * d[1], r[1] = r01 * d[0], r[2] = r23 * d[3], r[3] = r23 * d[2];
  }
}

// sum_c v_c / (1 + eq_c ek_c) over C vectors, as one fraction.
template <class T, int wide, int C>
ALWAYS_INLINE Vec<T> fraction_sum(const T *v, const T *eq, const T *key, Vec<T> &divided_by) {
  constexpr Index W = WIDTH<T>;
  if constexpr (C == 1) {
    divided_by = divisor<T, wide>(load(eq), load(key));
    return load(v);
  } else {
    constexpr Index half = C / 2 * W;
    Vec<T> d1, d2, v1 = fraction_sum<T, wide, C / 2>(v, eq, key, d1);
    Vec<T> v2 = fraction_sum<T, wide, C / 2>(v + half, eq + half, key + half, d2);
    divided_by = d1 * d2;
    return v1 * d2 + v2 * d1;
  }
}

template <class T, int wide, int C>
ALWAYS_INLINE void add_terms(Vec<T> (&total)[4], const Read<T> &read, const T *const *key, Index j) {
  each<4>([&](auto i) INLINED {
    Vec<T> d, numerator = fraction_sum<T, wide, C>(read.v + j, read.eq + j, key[i] + j, d);
    total[i] += numerator / d;
  });
}

template <class T, int wide> static void score_four(const Read<T> &read, const T *const *key, T *score) {
  constexpr Index W = WIDTH<T>;
  Vec<T> total[4];
  each<4>([&](auto i) INLINED { total[i] = Vec<T>{}; });
  Index j = 0;
  for (; j + 4 * W <= read.np; j += 4 * W) add_terms<T, wide, 4>(total, read, key, j);
  for (; j + 2 * W <= read.np; j += 2 * W) add_terms<T, wide, 2>(total, read, key, j);
  for (; j < read.np; j += W) add_terms<T, wide, 1>(total, read, key, j);
  sum_four<T>(total, score);
  for (int i = 0; i < 4; ++i) score[i] *= T(-2);
}

// tanh(q + k) - 1 at j.
template <class T> static inline Vec<T> bend(const Read<T> &read, const T *key, Index wide, Index j) {
  if (wide == WIDE) return tanh<T>(load(read.q + j) + load(key + j)) - T(1);
  return T(-2) / divisor<T, USUAL>(load(read.eq + j), load(key + j));
}

// Score of one key, where one of its group is wide.
template <class T> static T score_one(const Read<T> &read, Index slot) {
  Vec<T> total{};
  for (Index j = 0; j < read.np; j += WIDTH<T>)
    total += load(read.v + j) * bend(read, read.held[slot].key, read.held[slot].wide, j);
  return sum<T>(total);
}

// Up to four slots from i on; the last one stands in for those that are missing.
template <class T> struct Group {
  const T *key[4], *value[4];
  Index wide;  // the widest of query and keys; a wide query was clamped; WIDE: slot by slot
  Group(const Read<T> &read, Index i) {
    wide = read.steep ? WIDE : read.width == NARROW ? NARROW : USUAL;
    for (Index g = 0; g < 4; ++g) {
      const Held<T> &held = read.held[i + g < read.count ? i + g : read.count - 1];
      key[g] = held.key, value[g] = held.value;
      wide = held.wide > wide ? held.wide : wide;
    }
  }
};

// Scores of all slots; room up to a multiple of four.
template <class T> static void make_scores(const Read<T> &read, T *score) {
  for (Index i = 0; i < read.count && read.score == DOT; ++i) score[i] = read.scale * dot(read.q, read.held[i].key, read.np);
  for (Index i = 0; i < read.count && read.score != DOT; i += 4) {
    Group<T> group(read, i);
    if (group.wide == NARROW)
      score_four<T, NARROW>(read, group.key, score + i);
    else if (group.wide == USUAL)
      score_four<T, USUAL>(read, group.key, score + i);
    else
      for (Index g = i; g < i + 4 && g < read.count; ++g) score[g] = score_one(read, g);
  }
}

// What turns scores into weights again: exp(score - most) / total. (One number, log sum exp, would round too coarsely.)
template <class T> struct Softmax {
  T most, total;
};

// z (count, room up to a multiple of the vector) holds scores and becomes weights; the rest becomes 0.
template <class T> static Softmax<T> softmax(T *z, Index count) {
  constexpr Index W = WIDTH<T>;
  Vec<T> most_of = all<T>(z[0]), total{};
  for (Index i = 0; i < count; i += W) most_of = higher<T>(most_of, first_lanes<T>(load(z + i), count - i, z[0]));
  T most = largest<T>(most_of);
  for (Index i = 0; i < count; i += W) {
    Vec<T> e = first_lanes<T>(exp<T>(load(z + i) - most), count - i, T(0));
    store(z + i, e);
    total += e;
  }
  T all_of = sum<T>(total);
  for (Index i = 0; i < count; i += W) store(z + i, load(z + i) / all_of);
  return {most, all_of};
}

// result[j ...] = sum_i z_i value_i[j ...] over C vectors
template <class T, int C> static void weighted_columns(const Read<T> &read, const T *z, T *result, Index j) {
  constexpr Index W = WIDTH<T>;
  Vec<T> total[C] = {};
  for (Index i = 0; i < read.count; ++i)
    for (int c = 0; c < C; ++c) total[c] += z[i] * load(read.held[i].value + j + c * W);
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
  make_scores(read, z);
  Softmax<T> norm = softmax(z, read.count);
  weighted_sum(read, z, result);
  return norm;
}

// What sums of de r (1 - r) lack: see spread_slots.
template <class T> static void finish_slopes(T *sums, const T *v, Index np) {
  for (Index j = 0; j < np; j += WIDTH<T>) store(sums + j, load(sums + j) * load(v + j) * T(4));
}

template <class T> struct ReadBack {
  const T *dr;         // (np): gradient of the result
  const T *weights;    // (count) of the forward pass, or null: then they are computed again from its norm
  Softmax<T> norm;
  T *dq, *dv;          // (np), set; zero before; ADDITIVE: dv lacks the factor -2
  T *first;            // scratch: r of the first slot (np)
  T *z, *de;           // scratch: count and room up to a multiple of the vector
};

// With r = 1 / (1 + exp(2 (q + k))), tanh = 1 - 2 r and its derivative is 4 r (1 - r). Here only de r (1 - r) and de r are
// summed; the factors 4 v and -2 come once, where a sum is complete. The de of one read sum to zero: what all slots have in
// common teaches neither q nor v, and would only round, so that of the first slot, r1, is taken off first:
// r (1 - r) - r1 (1 - r1) = (r - r1) (1 - r1) - (r - r1) r, of which dq gathers the last term only; see finish_query.
// Local copies: a store through a vector might change anything else for all the compiler knows.
template <class T, int M, int wide>
static void spread_slots(const Read<T> &read, const ReadBack<T> &back, const Group<T> &group, Index i) {
  const T *key[4] = {group.key[0], group.key[1], group.key[2], group.key[3]};
  const T *eq = read.eq, *dr_of = back.dr;
  T *dq_of = back.dq, *dv_of = back.dv, *first_of = back.first, *sums[M];
  Vec<T> z[M], de[M];
  for (int g = 0; g < M; ++g) sums[g] = read.held[i + g].sums, z[g] = all<T>(back.z[i + g]), de[g] = all<T>(back.de[i + g]);
  for (Index j = 0, np = read.np; j < np; j += WIDTH<T>) {
    Vec<T> dr = load(dr_of + j), dq = load(dq_of + j), dv = load(dv_of + j), r[4];
    if (wide < WIDE) reciprocals<T, wide>(load(eq + j), key, j, r);
    for (int g = 0; wide == WIDE && g < M; ++g) r[g] = bend(read, key[g], read.held[i + g].wide, j) * T(-0.5);
    if (!i) store(first_of + j, r[0]);
#pragma GCC unroll 4
    for (int g = 0; g < M; ++g) {
      Vec<T> slope = r[g] - r[g] * r[g], part = de[g] * (r[g] - load(first_of + j));
      dv += part, dq += part * r[g];
      store(sums[g] + j, load(sums[g] + j) + z[g] * dr);
      store(sums[g] + np + j, load(sums[g] + np + j) + de[g] * slope);
    }
    store(dq_of + j, dq), store(dv_of + j, dv);
  }
}

template <class T, int M> static void spread_group(const Read<T> &read, const ReadBack<T> &back, Index i) {
  const Group<T> group(read, i);
  if (group.wide == NARROW) return spread_slots<T, M, NARROW>(read, back, group, i);
  group.wide == WIDE ? spread_slots<T, M, WIDE>(read, back, group, i) : spread_slots<T, M, USUAL>(read, back, group, i);
}

template <class T> static void spread_dot(const Read<T> &read, const ReadBack<T> &back, Index i) {
  T *sums = read.held[i].sums, z = back.z[i], de = read.scale * back.de[i];
  for (Index j = 0; j < read.np; j += WIDTH<T>) {
    store(back.dq + j, load(back.dq + j) + de * load(read.held[i].key + j));
    store(sums + j, load(sums + j) + z * load(back.dr + j));
    store(sums + read.np + j, load(sums + read.np + j) + de * load(read.q + j));
  }
}

// z: the weights of the forward pass.
template <class T> static void find_weights(const Read<T> &read, const ReadBack<T> &back) {
  if (back.weights) return copy(back.z, back.weights, read.count);
  make_scores(read, back.z);
  for (Index i = read.count; i % WIDTH<T>; ++i) back.z[i] = back.norm.most;
  for (Index i = 0; i < read.count; i += WIDTH<T>)
    store(back.z + i, exp<T>(load(back.z + i) - back.norm.most) / back.norm.total);
}

// de: the gradients of the scores. The mean is taken with these very weights, so that they sum to zero to rounding.
template <class T> static void score_gradients(const Read<T> &read, const ReadBack<T> &back) {
  for (Index i = 0; i < read.count; i += 4) {
    Group<T> group(read, i);
    Vec<T> dz[4] = {};
    for (Index j = 0; j < read.np; j += WIDTH<T>) {
      Vec<T> dr = load(back.dr + j);
      for (int g = 0; g < 4; ++g) dz[g] += dr * load(group.value[g] + j);
    }
    sum_four<T>(dz, back.de + i);
  }
  T mean = 0;
  for (Index i = 0; i < read.count; ++i) mean += back.z[i] * back.de[i];
  for (Index i = 0; i < read.count; ++i) back.de[i] = back.z[i] * (back.de[i] - mean);
}

template <class T> static void finish_query(const Read<T> &read, const ReadBack<T> &back) {
  for (Index j = 0; j < read.np; j += WIDTH<T>)
    store(back.dq + j, (T(1) - load(back.first + j)) * load(back.dv + j) - load(back.dq + j));
  finish_slopes(back.dq, read.v, read.np);
}

template <class T> static void read_backward(const Read<T> &read, const ReadBack<T> &back) {
  find_weights(read, back);
  score_gradients(read, back);
  Index i = 0;
  if (read.score == DOT)
    for (; i < read.count; ++i) spread_dot(read, back, i);
  for (; i + 4 <= read.count; i += 4) spread_group<T, 4>(read, back, i);
  for (; i < read.count; ++i) spread_group<T, 1>(read, back, i);
  if (read.score == ADDITIVE) finish_query(read, back);
}
