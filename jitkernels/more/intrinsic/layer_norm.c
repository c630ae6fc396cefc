// LAYER_NORM: per row the mean, the variance about it, and the result, in four accumulators each. An element
// is read for the last time right before its result is written, so y may be x.

INLINE element row_sum(const element *x, int64_t n) {
  vector a = zero(), b = zero(), c = zero(), d = zero();
  int64_t i = 0;
  for (; i + 4 * LANES <= n; i += 4 * LANES) {
    a = add(a, load(x + i));
    b = add(b, load(x + i + LANES));
    c = add(c, load(x + i + 2 * LANES));
    d = add(d, load(x + i + 3 * LANES));
  }
  for (; i + LANES <= n; i += LANES) a = add(a, load(x + i));
  if (i < n) b = add(b, load_part(x + i, first_lanes(n - i)));
  return total(add(add(a, b), add(c, d)));
}

INLINE element row_squares(const element *x, int64_t n, element mean) {
  vector a = zero(), b = zero(), c = zero(), d = zero(), middle = all(mean);
  int64_t i = 0;
  for (; i + 4 * LANES <= n; i += 4 * LANES) {
    vector p = subtract(load(x + i), middle), q = subtract(load(x + i + LANES), middle);
    vector r = subtract(load(x + i + 2 * LANES), middle), s = subtract(load(x + i + 3 * LANES), middle);
    a = multiply_add(p, p, a);
    b = multiply_add(q, q, b);
    c = multiply_add(r, r, c);
    d = multiply_add(s, s, d);
  }
  for (; i + LANES <= n; i += LANES) {
    vector p = subtract(load(x + i), middle);
    a = multiply_add(p, p, a);
  }
  if (i < n) {
    mask rest = first_lanes(n - i);
    vector p = keep_part(rest, subtract(load_part(x + i, rest), middle));
    b = multiply_add(p, p, b);
  }
  return total(add(add(a, b), add(c, d)));
}

INLINE void normalise(
    const element *x, const element *scale, const element *bias, element *y, int64_t n, element mean,
    element factor) {
  vector middle = all(mean), times = all(factor);
  int64_t i = 0;
#define RESULT(read)                                                             \
  vector value = multiply(subtract(read(x + i), middle), times);                 \
  if (scale) value = multiply_add(value, read(scale + i), read(bias + i));
  for (; i + LANES <= n; i += LANES) {
    RESULT(load)
    store(y + i, value);
  }
  if (i < n) {
    mask rest = first_lanes(n - i);
#define LOAD_REST(from) load_part(from, rest)
    RESULT(LOAD_REST)
    store_part(y + i, rest, value);
  }
}

INLINE int64_t every_row(
    const element *x, const element *scale, const element *bias, element *y, int64_t rows, int64_t n,
    element eps) {
  for (int64_t row = 0; row < rows; row++) {
    const element *from = x + row * n;
    element mean = row_sum(from, n) / (element)n;
    element variance = row_squares(from, n, mean) / (element)n;
    normalise(from, scale, bias, y + row * n, n, mean, 1 / SQUARE_ROOT(variance + eps));
  }
  return 0;
}

static int64_t layer_norm(
    const element *x, const element *scale, const element *bias, element *y, int64_t rows, int64_t n,
    const double *eps) {
  return every_row(x, scale, bias, y, rows, n, (element)*eps);
}

static int64_t layer_norm_plain(const element *x, element *y, int64_t rows, int64_t n, const double *eps) {
  return every_row(x, 0, 0, y, rows, n, (element)*eps);
}
