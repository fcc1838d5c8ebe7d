// Drawing tokens from a stack of layers: encode, scan, head, sample, next. A step has the bits that the scan gives it.

template <class T> struct Ends {  // what stands before and behind the layers
  Panels<T> head;
  T *head_bias;  // (classes, padded)
  T *starts;     // (tokens, x planes, np): the first layer's sums of each embedded token; null: computed step by step
};

constexpr Index STARTS_MOST = Index(1) << 24;  // numbers

template <class T> static Ends<T> lay_ends(const Generation<T> &g, Arena &arena) {
  const Scan<T> &a = g.layers[0];
  Ends<T> ends{};
  ends.head = take_panels<T>(arena, g.features, round_up(g.classes));
  ends.head_bias = arena.take<T>(round_up(g.classes));
  Index each = Layout(a.spec).x_count * a.np;
  if (g.embedding && g.tokens <= g.steps * g.batch && g.tokens * each <= STARTS_MOST)
    ends.starts = arena.take<T>(g.tokens * each);
  return ends;
}

// The part of the first layer's sums that x makes: planes (rows, stride) from x (rows, inputs), bias included.
template <class T>
static void start_planes(const Scan<T> &a, const Plan<T> &plan, Index rows, const T *x, T *planes, Index stride) {
  Layout layout(a.spec);
  Operand<T> from_x{x, a.inputs, a.inputs}, none{nullptr, 0, 0};
  Index both = layout.both_first * a.np;
  multiply<T>(planes + both, stride, rows, plan.bias + both, from_x, none, plan.both);
  if (layout.split()) multiply<T>(planes, stride, rows, plan.bias, from_x, none, plan.from_x);
}

template <class T> static std::size_t ends_size(const Generation<T> &g) {
  Arena arena{nullptr};
  arena.take<Ends<T>>(1);
  lay_ends(g, arena);
  return arena.used;
}

template <class T> static void make_ends(const Generation<T> &g, void *memory) {
  Arena arena{static_cast<char *>(memory)};
  Ends<T> *ends = arena.take<Ends<T>>(1);
  *ends = lay_ends(g, arena);
  pack_transposed(ends->head, 0, 0, g.head, g.classes, g.features);
  fill(ends->head_bias, round_up(g.classes), T(0));
  if (g.head_bias) copy(ends->head_bias, g.head_bias, g.classes);
  const Scan<T> &a = g.layers[0];
  if (ends->starts)
    start_planes(a, planned<T>(g.plans[0]), g.tokens, g.embedding, ends->starts, Layout(a.spec).x_count * a.np);
}

// --- the first layer's sums ------------------------------------------------------------------------------------------

// A one-hot token picks one row of the packed weights.
template <class T> static void start_one_hot(const Scan<T> &a, const Plan<T> &plan, int64_t token, T *planes) {
  constexpr Index W = WIDTH<T>;
  Layout layout(a.spec);
  auto pick_row = [&](const Panels<T> &from, Index plane) {
    for (Index j = 0; j < from.width; j += W)
      store(planes + plane * a.np + j, load(plan.bias + plane * a.np + j) + load(from.panel(j) + token * W));
  };
  pick_row(plan.both, layout.both_first);
  if (layout.split()) pick_row(plan.from_x, 0);
}

template <class T, int R, int C>
static void onto_tile(T *out, Index stride, const Operand<T> &a, const T *b, Index panel) {
  constexpr Index W = WIDTH<T>;
  Vec<T> total[R][C];
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c) total[r][c] = load(out + r * stride + c * W);
  accumulate<T, R, C>(total, a, b, panel);
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c) store(out + r * stride + c * W, total[r][c]);
}

template <class T> using OntoTile = void (*)(T *, Index, const Operand<T> &, const T *, Index);

template <class T, int R, int C = columns_for(R)> static OntoTile<T> pick_onto(int c) {
  if constexpr (C > 0)
    return c == C ? onto_tile<T, R, C> : pick_onto<T, R, C - 1>(c);
  else
    return nullptr;
}

// out (rows, b.width) += a b', b' the rows of b from k0 on: goes on with the chain of sums that `out` holds.
template <class T>
static void multiply_onto(T *out, Index stride, Index rows, const Operand<T> &a, const Panels<T> &b, Index k0) {
  constexpr Index W = WIDTH<T>;
  constexpr int R = 4;
  for (Index r = 0; r < rows;) {
    Index height = rows - r < R ? 1 : R, vectors = b.width / W;
    Index columns = even_share(vectors, columns_for(int(height)));
    Operand<T> part{a.data + r * a.stride, a.stride, a.depth};
    for (Index v = 0; v < vectors; v += columns) {
      int c = int(vectors - v < columns ? vectors - v : columns);
      OntoTile<T> tile = height == R ? pick_onto<T, R>(c) : pick_onto<T, 1>(c);
      tile(out + r * stride + v * W, stride, part, b.panel(v * W) + k0 * W, b.depth * W);
    }
    r += height;
  }
}

template <class T> struct Drawer {  // some rows of a generation
  const Generation<T> *g;
  const Ends<T> *ends;
  ForwardPass<T> *passes;  // (depth)
  T *h_spare, *x, *logits; // (rows, np) (rows, inputs) (rows, classes, padded)
  double *chances;         // (classes, padded)
  Index first, rows;

  int64_t token(Index t, Index row) const {
    return t ? g->drawn[(t - 1) * g->batch + first + row] : g->before[first + row];
  }
};

template <class T> static void start_tokens(const Drawer<T> &d, Index t) {
  const Generation<T> &g = *d.g;
  const ForwardPass<T> &pass = d.passes[0];
  const Scan<T> &a = g.layers[0];
  Index stride = a.spec.planes() * a.np, count = Layout(a.spec).x_count * a.np;
  for (Index row = 0; row < d.rows; ++row) {
    int64_t token = d.token(t, row);
    if (!g.embedding)
      start_one_hot(a, *pass.plan, token, pass.planes + row * stride);
    else if (d.ends->starts)
      copy(pass.planes + row * stride, d.ends->starts + token * count, count);
    else
      copy(d.x + row * a.inputs, g.embedding + token * a.inputs, a.inputs);
  }
  if (g.embedding && !d.ends->starts) start_planes(a, *pass.plan, d.rows, d.x, pass.planes, stride);
}

template <class T> static void first_planes(const Drawer<T> &d, Index t) {
  start_tokens(d, t);
  const ForwardPass<T> &pass = d.passes[0];
  const Scan<T> &a = *pass.a;
  Layout layout(a.spec);
  Index stride = layout.planes * a.np, np = a.np;
  Operand<T> from_s{pass.s, np, a.n}, none{nullptr, 0, 0};
  multiply_onto(pass.planes + layout.both_first * np, stride, d.rows, from_s, pass.plan->both, a.inputs);
  if (layout.split())
    multiply<T>(pass.planes + 3 * np, stride, d.rows, pass.plan->bias + 3 * np, from_s, none, pass.plan->from_s);
}

// --- a step ----------------------------------------------------------------------------------------------------------

template <class T> static void step_from_planes(const ForwardPass<T> &pass, Index t, T *h_spare) {
  const Scan<T> &a = *pass.a;
  if (a.spec.memory == BUFFER)
    multiply<T>(pass.q, a.np, pass.rows, nullptr, {pass.s, a.np, a.n}, {nullptr, 0, 0}, pass.plan->query);
  step_from_sums(pass, t, h_spare);
}

template <class T> static void step_layers(const Drawer<T> &d, Index t) {
  for (Index layer = 0; layer < d.g->depth; ++layer) {
    const ForwardPass<T> &pass = d.passes[layer];
    const Scan<T> &a = *pass.a;
    if (layer)
      make_planes(a, *pass.plan, d.rows, d.g->layers[layer - 1].output + d.first * a.inputs, pass.s, pass.planes,
                  a.spec.planes() * a.np);
    else
      first_planes(d, t);
    step_from_planes(pass, t, d.h_spare);
  }
}

// --- sampling --------------------------------------------------------------------------------------------------------

// The first of the largest logits; -1 if one is NaN, or the largest infinite.
template <class T> static Index likeliest(const T *logits, Index count) {
  Index best = 0;
  for (Index i = 0; i < count; ++i) {
    if (logits[i] != logits[i]) return -1;
    if (logits[i] > logits[best]) best = i;
  }
  return logits[best] - logits[best] == 0 ? best : -1;
}

// The first class up to which the chances, exp(logit / temperature), add up to more than `uniform` of their sum; -1 if
// that is no number. In double whatever T is: a sum over many classes keeps its small ones.
template <class T>
static Index draw_class(const T *logits, Index count, double temperature, double uniform, double *sums) {
  constexpr Index W = WIDTH<double>;
  Index best = likeliest(logits, count);
  if (best < 0) return -1;
  for (Index i = 0; i < count; ++i) sums[i] = (double(logits[i]) - double(logits[best])) / temperature;
  for (Index i = 0; i < count; i += W) {
    Vec<double> x = load(sums + i);
    store(sums + i, x < Simd<double>::least ? Vec<double>{} : exp<double>(x));
  }
  for (Index i = 1; i < count; ++i) sums[i] += sums[i - 1];
  double target = uniform * sums[count - 1];
  for (Index i = 0; i < count; ++i)
    if (sums[i] > target) return i;
  return count - 1;
}

template <class T> static bool draw_tokens(const Drawer<T> &d, Index t) {
  const Generation<T> &g = *d.g;
  Index padded = round_up(g.classes);
  Operand<T> output{g.layers[g.depth - 1].output + d.first * g.features, g.features, g.features};
  multiply<T>(d.logits, padded, d.rows, d.ends->head_bias, output, {nullptr, 0, 0}, d.ends->head);
  for (Index row = 0; row < d.rows; ++row) {
    const T *logits = d.logits + row * padded;
    Index at = t * g.batch + d.first + row;
    Index token = g.uniforms ? draw_class(logits, g.classes, g.temperature, g.uniforms[at], d.chances)
                             : likeliest(logits, g.classes);
    if (token < 0) return false;
    g.drawn[at] = token;
  }
  return true;
}

template <class T> static Drawer<T> lay_drawer(const Generation<T> &g, Index first, Index rows, Arena &arena) {
  Drawer<T> d{};
  Index padded = round_up(g.classes), np = g.layers[0].np;
  d.g = &g, d.first = first, d.rows = rows;
  d.passes = arena.take<ForwardPass<T>>(g.depth);
  d.h_spare = arena.take<T>(rows * np), d.x = arena.take<T>(rows * g.layers[0].inputs);
  d.logits = arena.take<T>(rows * padded), d.chances = arena.take<double>(padded);
  for (Index layer = 0; layer < g.depth; ++layer) {
    ForwardPass<T> pass = lay_forward(g.layers[layer], first, rows, arena);
    if (arena.base) d.passes[layer] = pass;
  }
  return d;
}

template <class T> static std::size_t generate_scratch(const Generation<T> &g, Index rows) {
  Arena arena{nullptr};
  lay_drawer(g, 0, rows, arena);
  return arena.used + 64;
}

// All steps of some rows; false where the logits are no numbers to draw from.
template <class T> static bool generate(const Generation<T> &g, Index first, Index last, void *scratch) {
  Arena arena{static_cast<char *>(scratch)};
  Drawer<T> d = lay_drawer(g, first, last - first, arena);
  d.ends = static_cast<const Ends<T> *>(g.ends);
  fill(d.chances, round_up(g.classes), 0.0);
  for (Index layer = 0; layer < g.depth; ++layer) {
    d.passes[layer].plan = &planned<T>(g.plans[layer]);
    start_forward(d.passes[layer]);
  }
  for (Index t = 0; t < g.steps; ++t) {
    step_layers(d, t);
    if (!draw_tokens(d, t)) return false;
  }
  return true;
}
