// The stored states of Strided: every `every`-th macro-state competes for a slot by a score that never changes, and the
// read weighs each slot by how far its score lies above the least that counts. The query cancels in that difference.

template <class T> struct Stored {  // one row
  Index slots;
  T *values;       // (slots, np)
  T *keys;         // (slots)
  int64_t *steps;  // (slots)
};

template <class T> static T static_key(const Spec &spec, const T *row, const T *weights, Index np) {
  if (spec.score == AFFINE) return dot(row, weights, np);
  Vec<T> total{};
  for (Index j = 0; j < np; j += WIDTH<T>) total += tanh<T>(load(row + j)) * load(weights + j);
  return sum<T>(total);
}

template <class T> struct StrideWeights {
  T weights[64];      // spec.relevant <= 64 is checked by the caller
  Index threshold;    // slot whose score is the threshold, or -1: nothing held, or raw scores
  bool raw;
  T total;            // sum before normalising
};

constexpr double NORMALISER_FLOOR = 1e-7;

template <class T>
static StrideWeights<T> stride_weights(const Scan<T> &a, const Stored<T> &row, int64_t position, T present) {
  StrideWeights<T> out{};
  out.threshold = -1;
  Index held = 0;
  for (Index j = 0; j < row.slots; ++j) held += row.steps[j] != EMPTY;
  int64_t stored = position / a.spec.every + a.spec.start_zero;
  out.raw = a.spec.raw_underfull && stored <= a.spec.top_k;
  if (!held) return out;
  // All slots of the state are within the rank: the threshold is the least score held.
  for (Index j = 0; j < row.slots; ++j)
    if (row.steps[j] != EMPTY && (out.threshold < 0 || row.keys[j] < row.keys[out.threshold])) out.threshold = j;
  for (Index j = 0; j < row.slots; ++j) {
    if (row.steps[j] == EMPTY) continue;
    T above = row.keys[j] - row.keys[out.threshold];
    out.weights[j] = out.raw ? row.keys[j] + present : above;
    out.total += out.raw ? T(0) : above;
  }
  if (a.spec.normalise && !out.raw)
    for (Index j = 0; j < row.slots; ++j) out.weights[j] /= out.total + T(NORMALISER_FLOOR);
  return out;
}

// What the query adds to every score; it matters only to raw scores.
template <class T> static T present_score(const Scan<T> &a, const Plan<T> &plan, const T *h) {
  if (!a.spec.raw_underfull) return T(0);
  return static_key(a.spec, h, plan.query_row, a.np) + (a.score ? a.score[0] : T(0));
}

template <class T>
static void stride_read(const Scan<T> &a, const Plan<T> &plan, const Stored<T> &row, int64_t position, const T *h,
                        T *result) {
  StrideWeights<T> w = stride_weights(a, row, position, present_score(a, plan, h));
  fill(result, a.np, T(0));
  for (Index s = 0; s < row.slots; ++s)
    if (row.steps[s] != EMPTY)
      for (Index j = 0; j < a.np; j += WIDTH<T>)
        store(result + j, load(result + j) + w.weights[s] * load(row.values + s * a.np + j));
}

// Offers the new macro-state; writes the log.
template <class T>
static void stride_store(const Scan<T> &a, const Plan<T> &plan, const Stored<T> &row, Index log, int64_t position,
                         const T *s) {
  a.log_slot[log] = a.log_displaced[log] = EMPTY;
  if ((position + 1) % a.spec.every) return;
  T key = static_key(a.spec, s, plan.key_row, a.np);
  Index j = a.forced ? Index(a.forced[log]) : choose_slot(key, row.keys, row.steps, row.slots);
  if (j < 0 || j >= row.slots) return;
  a.log_slot[log] = j, a.log_displaced[log] = row.steps[j];
  copy(row.values + j * a.np, s, a.np);
  row.keys[j] = key, row.steps[j] = position;
}

template <class T> static void empty_stored(const Scan<T> &a, const Stored<T> &row) {
  fill(row.values, row.slots * a.np, T(0));
  fill(row.keys, row.slots, T(0));
  fill(row.steps, row.slots, EMPTY);
  if (a.spec.start_zero && row.slots) row.steps[0] = BEFORE_START;
}

template <class T>
static void load_stored(const Scan<T> &a, const Plan<T> &plan, const Stored<T> &row, Index batch_row) {
  for (Index j = 0; j < row.slots; ++j) {
    Index from = batch_row * row.slots + j;
    widen(row.values + j * a.np, a.relevant0 + from * a.n, a.n, a.np);
    row.keys[j] = static_key(a.spec, row.values + j * a.np, plan.key_row, a.np);
    row.steps[j] = a.relevant_step0[from];
  }
}

// --- backward --------------------------------------------------------------------------------------------------------

template <class T> struct StrideSums {
  T *values, *keys;                 // (slots, np) (slots): gradients of what is held, added to
  T *dkey, *dquery, *dscore;        // (np) (np) (1): gradients of the weights, added to
};

// d of a static key into the row that it was made from (or null), and into its weights.
template <class T>
static void static_key_back(const Spec &spec, const T *row, const T *weights, T d, Index np, T *drow, T *dweights) {
  for (Index j = 0; j < np; j += WIDTH<T>) {
    Vec<T> m = load(row + j), slope = all<T>(T(1));
    if (spec.score == TANH_AFFINE) m = tanh<T>(m), slope = T(1) - m * m;
    store(dweights + j, load(dweights + j) + d * m);
    if (drow) store(drow + j, load(drow + j) + d * (slope * load(weights + j)));
  }
}

template <class T>
static void stride_read_back(const Scan<T> &a, const Plan<T> &plan, const Stored<T> &row, int64_t position, const T *h,
                             const T *dr, T *dh, const StrideSums<T> &sums) {
  StrideWeights<T> w = stride_weights(a, row, position, present_score(a, plan, h));
  T dweight[64], mean = 0, total = 0;
  for (Index s = 0; s < row.slots; ++s) {
    if (row.steps[s] == EMPTY) continue;
    dweight[s] = dot(dr, row.values + s * a.np, a.np);
    mean += w.weights[s] * dweight[s];
    for (Index j = 0; j < a.np; j += WIDTH<T>)
      store(sums.values + s * a.np + j, load(sums.values + s * a.np + j) + w.weights[s] * load(dr + j));
  }
  for (Index s = 0; s < row.slots; ++s) {
    if (row.steps[s] == EMPTY) continue;
    T d = dweight[s];
    if (!w.raw && a.spec.normalise) d = (d - mean) / (w.total + T(NORMALISER_FLOOR));
    if (!w.raw && !(row.keys[s] > row.keys[w.threshold])) d = 0;  // relu
    sums.keys[s] += d;
    total += d;
  }
  if (w.threshold < 0) return;
  if (!w.raw) {
    sums.keys[w.threshold] -= total;
    return;
  }
  static_key_back(a.spec, h, plan.query_row, total, a.np, dh, sums.dquery);
  *sums.dscore += total;
}
