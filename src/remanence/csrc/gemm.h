// Matrix products with few rows and weights packed once per call. Every element is one chain of sums over k in
// ascending order, whatever the number of rows and the shape of the tile: a row's bits never depend on its neighbours.

// Tall tiles pass fewer times over the weights, wide ones have more work per load: the first is for large weights.
constexpr int ROWS_USUAL = REGISTERS >= 32 ? 8 : 6, ROWS_MOST = REGISTERS >= 32 ? 12 : 6;
constexpr Index LARGE_WEIGHTS = 256 << 10;
constexpr int COLUMNS_MOST = 8;
constexpr int columns_for(int rows) {  // vectors per tile so that sums and loads stay in registers
  int c = (REGISTERS - 1) / (rows + 1);
  return c > COLUMNS_MOST ? COLUMNS_MOST : c;
}

// A (depth, width) matrix in panels of one vector: data[width / W][depth][W].
template <class T> struct Panels {
  T *data;
  Index depth, width;
  T *panel(Index column) const { return data + column * depth; }
};

template <class T> struct Operand {  // (rows, depth), row stride
  const T *data;
  Index stride, depth;
};

// Width of the next tile so that all are nearly equal: four vectors in tiles of three are two and two.
static inline Index even_share(Index vectors, Index most) {
  Index tiles = (vectors + most - 1) / most;
  return (vectors + tiles - 1) / tiles;
}

// --- packing ---------------------------------------------------------------------------------------------------------

// One stage of a transpose: exchanges the halves of 2 D x 2 D blocks between two rows.
template <class T, int D, std::size_t... J>
static inline void exchange(Vec<T> &a, Vec<T> &b, std::index_sequence<J...>) {
  constexpr int W = WIDTH<T>;
  Vec<T> low = __builtin_shufflevector(a, b, (int(J) & D ? W + int(J) - D : int(J))...);
  b = __builtin_shufflevector(a, b, (int(J) & D ? W + int(J) : int(J) + D)...);
  a = low;
}

template <class T, int D = WIDTH<T> / 2> static inline void transpose(Vec<T> (&rows)[WIDTH<T>]) {
  for (int i = 0; i < WIDTH<T>; ++i)
    if (!(i & D)) exchange<T, D>(rows[i], rows[i + D], std::make_index_sequence<WIDTH<T>>());
  if constexpr (D > 1) transpose<T, D / 2>(rows);
}

// panels[k0 + k][column0 + i] = matrix[i][k], i < count, else 0 up to the padding: the weights of a product x -> W x.
template <class T>
static void pack_transposed(const Panels<T> &to, Index k0, Index column0, const T *matrix, Index count, Index depth) {
  constexpr Index W = WIDTH<T>;
  for (Index i = 0; i < (count + ALIGN - 1) / ALIGN * ALIGN; i += W) {
    T *panel = to.panel(column0 + i) + k0 * W;
    Index k = 0;
    for (; count - i >= W && k + W <= depth; k += W) {
      Vec<T> rows[W];
      for (Index lane = 0; lane < W; ++lane) rows[lane] = load(matrix + (i + lane) * depth + k);
      transpose<T>(rows);
      for (Index lane = 0; lane < W; ++lane) store(panel + (k + lane) * W, rows[lane]);
    }
    for (; k < depth; ++k)
      for (Index lane = 0; lane < W; ++lane)
        panel[k * W + lane] = i + lane < count ? matrix[(i + lane) * depth + k] : T(0);
  }
}

// panels[k0 + k][i] = matrix[k][i], k < depth, i < count: the weights of a product d -> W' d. Rest of the width: 0.
template <class T>
static void pack_straight(const Panels<T> &to, Index k0, const T *matrix, Index count, Index depth) {
  constexpr Index W = WIDTH<T>;
  for (Index i = 0; i < to.width; i += W) {
    T *panel = to.panel(i) + k0 * W;
    Index k = 0;
    for (; count - i >= W && k < depth; ++k) store(panel + k * W, load(matrix + k * count + i));
    for (; k < depth; ++k)
      for (Index lane = 0; lane < W; ++lane) panel[k * W + lane] = i + lane < count ? matrix[k * count + i + lane] : T(0);
  }
}

// --- rows x panels ---------------------------------------------------------------------------------------------------

template <class T, int R, int C>
ALWAYS_INLINE void accumulate(Vec<T> (&total)[R][C], const Operand<T> &a, const T *b, Index panel) {
  constexpr Index W = WIDTH<T>;
  const T *row[R];
  each<R>([&](auto r) INLINED { row[r] = a.data + r * a.stride; });
#pragma GCC unroll 2
  for (Index k = 0, depth = a.depth; k < depth; ++k) {
    Vec<T> column[C];
    each<C>([&](auto c) INLINED { column[c] = load(b + c * panel + k * W); });
    each<R * C>([&](auto i) INLINED { total[i / C][i % C] += row[i / C][k] * column[i % C]; });
  }
}

template <class T, int R, int C>
static void tile(T *out, Index stride, const T *bias, const Operand<T> &a1, const Operand<T> &a2, const T *b,
                 Index panel) {
  constexpr Index W = WIDTH<T>;
  Vec<T> total[R][C];
  each<R * C>([&](auto i) INLINED { total[i / C][i % C] = bias ? load(bias + i % C * W) : Vec<T>{}; });
  accumulate<T, R, C>(total, a1, b, panel);
  if (a2.depth) accumulate<T, R, C>(total, a2, b + a1.depth * W, panel);
  each<R * C>([&](auto i) INLINED { store(out + i / C * stride + i % C * W, total[i / C][i % C]); });
}

template <class T>
using Tile = void (*)(T *, Index, const T *, const Operand<T> &, const Operand<T> &, const T *, Index);

template <class T, int R, int C> static constexpr Tile<T> pick_columns(int c) {
  if constexpr (C > 0)
    return c == C ? tile<T, R, C> : pick_columns<T, R, C - 1>(c);
  else
    return nullptr;
}

template <class T, int R> static Tile<T> pick(int r, int c) {
  if constexpr (R > 0)
    return r == R ? pick_columns<T, R, columns_for(R)>(c) : pick<T, R - 1>(r, c);
  else
    return nullptr;
}

// out (rows, b.width) = bias + [a1 | a2] b, bias (b.width) or null.
template <class T>
static void multiply(T *out, Index stride, Index rows, const T *bias, const Operand<T> &a1, const Operand<T> &a2,
                     const Panels<T> &b) {
  constexpr Index W = WIDTH<T>;
  if (!rows) return;
  bool large = b.depth * b.width * Index(sizeof(T)) > LARGE_WEIGHTS;
  Index most = large ? ROWS_MOST : ROWS_USUAL, tiles = (rows + most - 1) / most, tall = (rows + tiles - 1) / tiles;
  Index vectors = b.width / W, columns;
  for (Index v = 0; v < vectors; v += columns) {
    columns = even_share(vectors - v, columns_for(int(tall)));
    auto tile_of = [&](Index height) { return pick<T, ROWS_MOST>(int(height), int(columns)); };
    Tile<T> usual = tile_of(tall), last = tile_of(rows % tall);
    const T *panel = b.panel(v * W), *bias_here = bias ? bias + v * W : nullptr;
    for (Index r = 0; r < rows; r += tall) {
      Operand<T> part1{a1.data + r * a1.stride, a1.stride, a1.depth}, part2{a2.data, a2.stride, a2.depth};
      if (a2.depth) part2.data += r * a2.stride;
      (rows - r < tall ? last : usual)(out + r * stride + v * W, stride, bias_here, part1, part2, panel, b.depth * W);
    }
  }
}

template <class T>
static void product(const T *a, Index rows, const T *weights, Index width, Index depth, void *packed, T *out) {
  Panels<T> panels{static_cast<T *>(packed), depth, width};
  pack_transposed(panels, 0, 0, weights, width, depth);
  multiply<T>(out, width, rows, nullptr, {a, depth, depth}, {nullptr, 0, 0}, panels);
}

// --- sums of outer products ------------------------------------------------------------------------------------------

constexpr int OUTER_ROWS = REGISTERS >= 32 ? 8 : 4;  // divides ALIGN
constexpr int OUTER_COLUMNS = 3;

// The left factor is read where it is.
template <class T, int C>
static void outer_tile(T *sums, Index stride, const T *const *a, Index at, const T *b, Index panel, Index depth) {
  constexpr Index W = WIDTH<T>;
  constexpr int R = OUTER_ROWS;
  Vec<T> total[R][C];
  each<R * C>([&](auto i) INLINED {
    total[i / C][i % C] = Vec<T>{};
    __builtin_prefetch(sums + i / C * stride + i % C * W, 1);  // wanted at the end, all at once
  });
#pragma GCC unroll 2
  for (Index k = 0; k < depth; ++k) {
    Vec<T> column[C];
    const T *left = a[k] + at;
    each<C>([&](auto c) INLINED { column[c] = load(b + c * panel + k * W); });
    each<R * C>([&](auto i) INLINED { total[i / C][i % C] += left[i / C] * column[i % C]; });
  }
  each<R * C>([&](auto i) INLINED {
    T *to = sums + i / C * stride + i % C * W;
    store(to, load(to) + total[i / C][i % C]);
  });
}

// Column panels of the right factor: data[width / W][depth][W]; entries from `count` on are zero.
template <class T> static void pack_columns(T *to, const T *const *rows, Index count, Index width, Index depth) {
  constexpr Index W = WIDTH<T>;
  for (Index i = 0; i < width; i += W) {
    T *panel = to + i * depth;
    Index lanes = count - i < W ? count - i : W;
    if (lanes == W)
      for (Index k = 0; k < depth; ++k) store(panel + k * W, load(rows[k] + i));
    else
      for (Index k = 0; k < depth; ++k)
        for (Index lane = 0; lane < W; ++lane) panel[k * W + lane] = lane < lanes ? rows[k][i + lane] : T(0);
  }
}

// Columns `from` to `to` of the left factor by all of the right one.
template <class T>
static void outer_strip(T *sums, Index from, Index to, Index width, const T *const *left, const T *right, Index depth) {
  constexpr Index W = WIDTH<T>;
  Index vectors = width / W, columns;
  for (Index v = 0; v < vectors; v += columns) {
    columns = even_share(vectors - v, OUTER_COLUMNS);
    for (Index i = from; i < to; i += OUTER_ROWS) {
      T *corner = sums + (i - from) * width + v * W;
      const T *b = right + v * W * depth;
      if (columns == 1) outer_tile<T, 1>(corner, width, left, i, b, depth * W, depth);
      if (columns == 2) outer_tile<T, 2>(corner, width, left, i, b, depth * W, depth);
      if (columns == 3) outer_tile<T, 3>(corner, width, left, i, b, depth * W, depth);
    }
  }
}

// sums (height, width) += left' right over `depth` rows: left columns `at` to at + height, a multiple of ALIGN; right in
// panels, its width a multiple of the vector. The left factor's rows are far apart: each strip of its columns comes into
// the cache once, called for while the one before it is worked on.
template <class T>
static void add_outer(T *sums, Index height, Index width, const T *const *left, Index at, const T *right, Index depth) {
  constexpr Index STRIP = 4 * ALIGN, LINE = 64 / Index(sizeof(T));
  for (Index from = 0; from < height; from += STRIP) {
    Index to = height - from < STRIP ? height : from + STRIP, next = height - to < STRIP ? height : to + STRIP;
    for (Index k = 0; k < depth; ++k)
      for (Index j = to; j < next; j += LINE) __builtin_prefetch(left[k] + at + j);
    outer_strip(sums + from * width, at + from, at + to, width, left, right, depth);
  }
}
