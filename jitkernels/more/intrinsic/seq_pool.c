// SEQ_POOL: the accumulators of narrow rows stay in registers over the sequence; wide rows are reduced into the
// result eight at a time, in memory order. Sums of many rows are blocked, and the sums of blocks are compensated.
// POOL is SUM, MEAN, SQRT or MAX.

#define SUM 1
#define MEAN 2
#define SQRT 3
#define MAX 4

// Accumulator vectors that fit in the registers.
#ifdef AVX512
#define WIDEST 8
#else
#define WIDEST 4
#endif

// Rows of a block: one, and 16 times eight. Columns whose sums stay on the stack from block to block.
#if POOL == MAX
#define ROWS INT64_MAX
#else
#define ROWS 129
#endif
#define COLUMNS ((int64_t)(16384 / sizeof(element)))

// A maximum is NaN wherever a column holds one, as in NumPy. The instruction loses NaN, so the lanes that
// met one are collected in a mask, those of two vectors by one comparison.
#if POOL == MAX
typedef struct {
  vector value;
  nan_lanes lost;
} pooled;
INLINE pooled of_two(vector a, vector b) { return (pooled){larger(a, b), nan_in(a, b)}; }
INLINE pooled both(pooled a, pooled b) { return (pooled){larger(a.value, b.value), join(a.lost, b.lost)}; }
INLINE vector result(pooled a) { return put_nan(a.value, a.lost); }
INLINE element of_elements(element a, element b) { return a > b || a != a ? a : b; }
#else
typedef vector pooled;
INLINE pooled of_two(vector a, vector b) { return add(a, b); }
INLINE pooled both(pooled a, pooled b) { return add(a, b); }
INLINE vector result(pooled a) { return a; }
INLINE element of_elements(element a, element b) { return a + b; }
#endif

INLINE pooled of_one(vector a) {
#if POOL == MAX
  return of_two(a, a);
#else
  return a;
#endif
}

INLINE vector get(const element *from, int whole, mask lanes) {
  return whole ? load(from) : load_part(from, lanes);
}

INLINE void put(element *to, int whole, mask lanes, vector value) {
  if (whole)
    store(to, value);
  else
    store_part(to, lanes, value);
}

// Eight rows form a tree before they are added to the result: the dependence chain is an eighth as long.
INLINE pooled eight(const element *x, int64_t w, int whole, mask lanes) {
#define GET(row) get(x + (row) * w, whole, lanes)
  pooled low = both(of_two(GET(0), GET(1)), of_two(GET(2), GET(3)));
  pooled high = both(of_two(GET(4), GET(5)), of_two(GET(6), GET(7)));
  return both(low, high);
#undef GET
}

// Reduce `count` vectors, the last one of `lanes` lanes, over `h` rows into `so_far`.
INLINE void narrow_block(const element *x, pooled *so_far, int64_t h, int64_t w, int count, mask lanes) {
  int64_t i = 1;
  for (int v = 0; v < count; v++) so_far[v] = of_one(get(x + v * LANES, v < count - 1, lanes));
  for (; i + 8 <= h; i += 8)
    for (int v = 0; v < count; v++)
      so_far[v] = both(so_far[v], eight(x + i * w + v * LANES, w, v < count - 1, lanes));
  for (; i < h; i++)
    for (int v = 0; v < count; v++)
      so_far[v] = both(so_far[v], of_one(get(x + i * w + v * LANES, v < count - 1, lanes)));
}

INLINE void narrow(const element *x, element *y, int64_t h, int64_t w, int count, mask lanes, int many) {
  pooled so_far[WIDEST];
  if (!many) {
    narrow_block(x, so_far, h, w, count, lanes);
    for (int v = 0; v < count; v++) put(y + v * LANES, v < count - 1, lanes, result(so_far[v]));
    return;
  }
  vector sums[WIDEST], lost[WIDEST];
  narrow_block(x, so_far, h < ROWS ? h : ROWS, w, count, lanes);
  for (int v = 0; v < count; v++) sums[v] = result(so_far[v]), lost[v] = zero();
  for (int64_t top = ROWS; top < h; top += ROWS) {
    narrow_block(x + top * w, so_far, h - top < ROWS ? h - top : ROWS, w, count, lanes);
    for (int v = 0; v < count; v++) join_block(&sums[v], &lost[v], result(so_far[v]));
  }
  for (int v = 0; v < count; v++) put(y + v * LANES, v < count - 1, lanes, add_lost(sums[v], lost[v]));
}

INLINE void join_eight(const element *x, element *y, int64_t w, int whole, mask lanes) {
  put(y, whole, lanes, result(both(eight(x, w, whole, lanes), of_one(get(y, whole, lanes)))));
}

INLINE void wide_block(const element *x, element *y, int64_t h, int64_t w, int64_t width) {
  int64_t whole = width / LANES * LANES;
  mask lanes = first_lanes(width - whole);
  for (int64_t j = 0; j < width; j++) y[j] = x[j];
  int64_t i = 1;
  for (; i + 8 <= h; i += 8) {
    const element *row = x + i * w;
    for (int64_t j = 0; j < whole; j += LANES) join_eight(row + j, y + j, w, 1, lanes);
    if (whole < width) join_eight(row + whole, y + whole, w, 0, lanes);
  }
  for (; i < h; i++) {
    const element *row = x + i * w;
    for (int64_t j = 0; j < whole; j += LANES) store(y + j, result(of_two(load(row + j), load(y + j))));
    if (whole < width) {
      pooled last = of_two(load_part(row + whole, lanes), load_part(y + whole, lanes));
      store_part(y + whole, lanes, result(last));
    }
  }
}

INLINE void wide(const element *x, element *y, int64_t h, int64_t w, int64_t width, int many) {
  if (!many) {
    wide_block(x, y, h, w, width);
    return;
  }
  vector sums[COLUMNS / LANES], lost[COLUMNS / LANES];
  for (int64_t left = 0; left < width; left += COLUMNS) {
    int64_t columns = width - left < COLUMNS ? width - left : COLUMNS;
    mask last = first_lanes((columns - 1) % LANES + 1);
    for (int64_t top = 0; top < h; top += ROWS) {
      wide_block(x + top * w + left, y + left, h - top < ROWS ? h - top : ROWS, w, columns);
      for (int64_t j = 0; j < columns; j += LANES) {
        vector part = get(y + left + j, j + LANES < columns, last);
        vector *sum = &sums[j / LANES], *rest = &lost[j / LANES];
        if (top == 0)
          *sum = part, *rest = zero();
        else
          join_block(sum, rest, part);
      }
    }
    for (int64_t j = 0; j < columns; j += LANES)
      put(y + left + j, j + LANES < columns, last, add_lost(sums[j / LANES], lost[j / LANES]));
  }
}

// Rows of 1, 2, 4... elements: several whole rows fill a vector.
INLINE void tiny(const element *x, element *y, int64_t h, int64_t w, int many) {
  element parts[BYTES / sizeof(element)];
  int64_t vectors = h * w / LANES;
  narrow(x, parts, vectors, LANES, 1, first_lanes(LANES), many);
  for (int64_t j = 0; j < w; j++) {
    y[j] = parts[j];
    for (int64_t i = j + w; i < LANES; i += w) y[j] = of_elements(y[j], parts[i]);
    for (int64_t i = vectors * LANES + j; i < h * w; i += w) y[j] = of_elements(y[j], x[i]);
  }
}

INLINE void divide_all(element *y, int64_t h, int64_t width) {
#if POOL == MEAN || POOL == SQRT
  vector by = all(POOL == MEAN ? (element)h : (element)sqrt((double)h));
  int64_t j = 0;
  for (; j + LANES <= width; j += LANES) store(y + j, divide(load(y + j), by));
  mask lanes = first_lanes(width - j);
  if (j < width) store_part(y + j, lanes, divide(load_part(y + j, lanes), by));
#endif
}

// Reduce `width` columns of x[h, w] into y[width]. Unless `many` is set there are at most ROWS rows.
INLINE void columns(const element *x, element *y, int64_t h, int64_t w, int64_t width, int many) {
  mask lanes = first_lanes((width - 1) % LANES + 1);
  if (width == w && w < LANES && LANES % w == 0 && h * w >= LANES)
    tiny(x, y, h, w, many);
  else
    switch ((width + LANES - 1) / LANES) {
      case 1: narrow(x, y, h, w, 1, lanes, many); break;
      case 2: narrow(x, y, h, w, 2, lanes, many); break;
      case 3: narrow(x, y, h, w, 3, lanes, many); break;
      case 4: narrow(x, y, h, w, 4, lanes, many); break;
#ifdef AVX512
      case 5: narrow(x, y, h, w, 5, lanes, many); break;
      case 6: narrow(x, y, h, w, 6, lanes, many); break;
      case 7: narrow(x, y, h, w, 7, lanes, many); break;
      case 8: narrow(x, y, h, w, 8, lanes, many); break;
#endif
      default: wide(x, y, h, w, width, many);
    }
  divide_all(y, h, width);
}

// Noinline: the registers of its blocks would make the others slower.
static __attribute__((noinline)) void many_rows(
    const element *x, element *y, int64_t h, int64_t w, int64_t width) {
  columns(x, y, h, w, width, 1);
}

static int64_t seq_pool(const element *x, element *y, int64_t h, int64_t w, int64_t width) {
  if (width == 0) return 0;
  if (h <= ROWS)
    columns(x, y, h, w, width, 0);
  else
    many_rows(x, y, h, w, width);
  return 0;
}
