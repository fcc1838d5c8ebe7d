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

// to[i][j] = sum over groups of part(group)[i * stride + j], for a (rows, columns) gradient, or nothing if null.
template <class T, class Part>
static void add_groups(T *to, Index rows, Index columns, Index stride, Index groups, Part part) {
  if (!to) return;
  const T *first = part(0);
  for (Index i = 0; i < rows; ++i) copy(to + i * columns, first + i * stride, columns);
  for (Index g = 1; g < groups; ++g) {
    const T *from = part(g);
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < columns; ++j) to[i * columns + j] += from[i * stride + j];
  }
}

template <class T>
static void finish(const Scan<T> &a, const Gradients<T> &g, void *const *memory, Index groups) {
  Layout layout(a.spec);
  Index n = a.n, np = a.np, ip = round_up(a.inputs + 1);
  auto group = [&](Index i) { return open_sums(a, memory[i]); };
  auto block = [&](T *to, Index which, Index size) { return to ? to + which * size : nullptr; };
  auto bias_of = [&](Index p) { return [&, p](Index i) { return group(i).from_x + p * np * ip + a.inputs; }; };
  for (Index p = 0; p < layout.s_count; ++p)
    add_groups(block(g.w_hh, layout.s_block(layout.s_first + p), n * n), n, n, np, groups,
               [&](Index i) { return group(i).from_s + p * np * np; });
  for (Index p = 0; p < layout.x_count; ++p) {
    Index to = layout.x_block(p);
    add_groups(block(g.w_ih, to, n * a.inputs), n, a.inputs, ip, groups,
               [&](Index i) { return group(i).from_x + p * np * ip; });
    add_groups(block(g.b_ih, to, n), n, 1, ip, groups, bias_of(p));
    if (a.spec.cell != GRU)
      add_groups(block(g.b_hh, to, n), n, 1, ip, groups, bias_of(p));
  }
  if (a.spec.cell == GRU)
    for (Index p = 1; p < 4; ++p)
      add_groups(block(g.b_hh, layout.s_block(p), n), n, 1, ip, groups, bias_of(p));
  add_groups(g.modrelu, 1, n, np, groups, [&](Index i) { return group(i).modrelu; });
  if (a.spec.memory == BUFFER) {
    add_groups(g.query, n, n, np, groups, [&](Index i) { return group(i).from_s + layout.s_count * np * np; });
    add_groups(g.key, n, n, np, groups, [&](Index i) { return group(i).key; });
    add_groups(g.score, 1, n, np, groups, [&](Index i) { return group(i).score; });
  } else if (a.spec.memory == STRIDE) {
    add_groups(g.query, 1, n, np, groups, [&](Index i) { return group(i).query_row; });
    add_groups(g.key, 1, n, np, groups, [&](Index i) { return group(i).key_row; });
    add_groups(g.score, 1, 1, 1, groups, [&](Index i) { return group(i).score_bias; });
  }
}
