// Sums of the weight gradients of one group of rows. Groups are added in order at the end, so no sum depends on threads.

template <class T> struct Sums {
  T *from_s;              // ((s planes + 1) np, np): last block the query matrix
  T *from_x;              // (planes np, bias_column + 1, rounded up): the column after the inputs is the bias
  T *key;                 // (np, np)
  T *score, *modrelu;     // (np)
  T *key_row, *query_row; // (np): STRIDE
  T *score_bias;          // (1): STRIDE
  T *recent_score;        // (np): the score gradient of the present chunk
};

template <class T> static Sums<T> lay_sums(const Scan<T> &a, Arena &arena) {
  Layout layout(a.spec);
  bool reads = a.spec.memory == BUFFER;
  Sums<T> sums{};
  sums.from_s = arena.take<T>((layout.s_count + reads) * a.np * a.np);
  sums.from_x = arena.take<T>(layout.planes * a.np * round_up(a.inputs + 1));
  sums.key = arena.take<T>(reads ? a.np * a.np : 0);
  sums.score = arena.take<T>(a.np), sums.modrelu = arena.take<T>(a.np);
  sums.key_row = arena.take<T>(a.np), sums.query_row = arena.take<T>(a.np);
  sums.score_bias = arena.take<T>(1), sums.recent_score = arena.take<T>(a.np);
  return sums;
}

template <class T> static std::size_t sums_size(const Scan<T> &a) {
  Arena arena{nullptr};
  lay_sums(a, arena);
  return arena.used;
}

template <class T> static Sums<T> open_sums(const Scan<T> &a, void *memory) {
  Arena arena{static_cast<char *>(memory)};
  return lay_sums(a, arena);
}

// The sums of one group join a gradient: to[i][j] (+)= from[i * stride + j], (rows, columns); nothing if it is null.
template <class T> static void join(T *to, bool first, Index rows, Index columns, Index stride, const T *from) {
  for (Index i = 0; to && i < rows; ++i) {
    if (first) copy(to + i * columns, from + i * stride, columns);
    for (Index j = 0; !first && j < columns; ++j) to[i * columns + j] += from[i * stride + j];
  }
}

template <class T> static void finish(const Scan<T> &a, const Gradients<T> &g, void *memory, bool first) {
  Layout layout(a.spec);
  Index n = a.n, np = a.np, ip = round_up(a.inputs + 1);
  Sums<T> sums = open_sums(a, memory);
  auto block = [&](T *to, Index which, Index size) { return to ? to + which * size : nullptr; };
  auto bias_of = [&](Index p) { return sums.from_x + p * np * ip + a.inputs; };
  for (Index p = 0; p < layout.s_count; ++p)
    join(block(g.w_hh, layout.s_block(layout.s_first + p), n * n), first, n, n, np, sums.from_s + p * np * np);
  for (Index p = 0; p < layout.x_count; ++p) {
    Index to = layout.x_block(p);
    join(block(g.w_ih, to, n * a.inputs), first, n, a.inputs, ip, sums.from_x + p * np * ip);
    join(block(g.b_ih, to, n), first, n, 1, ip, bias_of(p));
    if (a.spec.cell != GRU) join(block(g.b_hh, to, n), first, n, 1, ip, bias_of(p));
  }
  if (a.spec.cell == GRU)
    for (Index p = 1; p < 4; ++p) join(block(g.b_hh, layout.s_block(p), n), first, n, 1, ip, bias_of(p));
  join(g.modrelu, first, 1, n, np, sums.modrelu);
  if (a.spec.memory == BUFFER) {
    join(g.query, first, n, n, np, sums.from_s + layout.s_count * np * np);
    join(g.key, first, n, n, np, sums.key);
    join(g.score, first, 1, n, np, sums.score);
  } else if (a.spec.memory == STRIDE) {
    join(g.query, first, 1, n, np, sums.query_row);
    join(g.key, first, 1, n, np, sums.key_row);
    join(g.score, first, 1, 1, 1, sums.score_bias);
  }
}
