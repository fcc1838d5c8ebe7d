// One step of few rows: weights that are used once need no packing. The sums are the chains of the packed product.

// Columns k to k + W of W rows of a matrix, made in registers and used at once: out (rows, W) += x (rows, W) block'.
template <class T>
static inline void multiply_block(T *out, Index stride, Index rows, const T *x, Index x_stride, const T *block, Index depth) {
  constexpr Index W = WIDTH<T>;
  Vec<T> column[W];
  for (Index lane = 0; lane < W; ++lane) column[lane] = load(block + lane * depth);
  transpose<T>(column);
  for (Index r = 0; r < rows; ++r) {
    Vec<T> total = load(out + r * stride);
    for (Index j = 0; j < W; ++j) total += x[r * x_stride + j] * column[j];
    store(out + r * stride, total);
  }
}

// out (rows, count) += x matrix', matrix (count, depth) as it is. Each sum is one chain, and chains of several vectors go
// side by side, or they would wait for themselves.
template <class T>
static void multiply_once(T *out, Index stride, Index rows, const T *x, Index x_stride, const T *matrix, Index count,
                          Index depth) {
  constexpr Index W = WIDTH<T>, STRIP = 4 * W;
  Index whole = depth / W * W;
  for (Index first = 0; first < count; first += STRIP) {
    Index past = count - first < STRIP ? count : first + STRIP;
    for (Index k = 0; k < whole; k += W)
      for (Index i = first; i + W <= past; i += W)
        multiply_block(out + i, stride, rows, x + k, x_stride, matrix + i * depth + k, depth);
    for (Index i = first; i < past; i += W) {
      Index lanes = past - i < W ? past - i : W;
      for (Index k = lanes == W ? whole : 0; k < depth; ++k) {
        Vec<T> column{};
        for (Index lane = 0; lane < lanes; ++lane) column[lane] = matrix[(i + lane) * depth + k];
        for (Index r = 0; r < rows; ++r)
          store(out + r * stride + i, load(out + r * stride + i) + x[r * x_stride + k] * column);
      }
    }
  }
}

// Goes on from the sums of planes and queries; as `step_all`, for rows that neither end nor start afresh.
template <class T> static void step_from_sums(const ForwardPass<T> &pass, Index t, T *h_spare) {
  const Scan<T> &a = *pass.a;
  Index np = a.np, planes = a.spec.planes() * np;
  bool reads = a.spec.memory == BUFFER;
  T *h = state_rows(pass, t);
  if (!h) h = h_spare;
  for (Index row = 0; row < pass.rows; ++row) {
    if (reads) screen_oldest(pass.buffer, t, row, pass.position[row]);
    step_cell(pass, t, row, pass.planes + row * planes, h + row * np);
  }
  if (reads) step_keys(pass, t, pass.rows, h);
  for (Index row = 0; row < pass.rows; ++row) {
    step_row(pass, t, row, h + row * np);
    if (t == a.steps - 1) finish_row(pass, t, row);
  }
}

// The keys of all that is held are a product of many rows: theirs are the only weights that are packed.
template <class T> static Plan<T> lay_once(const Scan<T> &a, Arena &arena) {
  Plan<T> plan{};
  plan.reads = a.spec.memory == BUFFER;
  if (plan.reads) plan.key = take_panels<T>(arena, a.n, a.np);
  plan.bias = arena.take<T>(a.spec.planes() * a.np);
  plan.score = arena.take<T>(a.np), plan.modrelu = arena.take<T>(a.np);
  plan.key_row = arena.take<T>(a.np), plan.query_row = arena.take<T>(a.np);
  return plan;
}

template <class T> static void sums_once(const ForwardPass<T> &pass) {
  const Scan<T> &a = *pass.a;
  Layout layout(a.spec);
  Index n = a.n, np = a.np, stride = layout.planes * np;
  for (Index row = 0; row < pass.rows; ++row) copy(pass.planes + row * stride, pass.plan->bias, stride);
  for (Index p = 0; p < layout.planes; ++p) {
    T *plane = pass.planes + p * np;
    if (p < layout.x_count)
      multiply_once(plane, stride, pass.rows, a.x, a.inputs, a.w_ih + layout.x_block(p) * n * a.inputs, n, a.inputs);
    if (p >= layout.s_first)
      multiply_once(plane, stride, pass.rows, pass.s, np, a.w_hh + layout.s_block(p) * n * n, n, n);
  }
  if (a.spec.memory != BUFFER) return;
  fill(pass.q, pass.rows * np, T(0));
  multiply_once(pass.q, np, pass.rows, pass.s, np, a.query, n, n);
}

template <class T> static std::size_t once_scratch(const Scan<T> &a) {
  Arena arena{nullptr};
  lay_once(a, arena);
  lay_forward(a, 0, a.batch, arena);
  arena.take<T>(a.batch * a.np);
  return arena.used + 64;
}

// The only step of all rows; nothing is saved.
template <class T> static void once(const Scan<T> &a, void *scratch) {
  Arena arena{static_cast<char *>(scratch)};
  Plan<T> plan = lay_once(a, arena);
  ForwardPass<T> pass = lay_forward(a, 0, a.batch, arena);
  T *h_spare = arena.take<T>(a.batch * a.np);
  pack_plan(a, false, plan);
  pass.plan = &plan;
  start_forward(pass);
  sums_once(pass);
  step_from_sums(pass, 0, h_spare);
}
