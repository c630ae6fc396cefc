// VMUL: z = x * y. Every element is read before it is written, so z may be x or y.

static int64_t vmul(const element *x, const element *y, element *z, int64_t n) {
  int64_t i = 0;
  for (; i + 4 * LANES <= n; i += 4 * LANES) {
    vector a = multiply(load(x + i), load(y + i));
    vector b = multiply(load(x + i + LANES), load(y + i + LANES));
    vector c = multiply(load(x + i + 2 * LANES), load(y + i + 2 * LANES));
    vector d = multiply(load(x + i + 3 * LANES), load(y + i + 3 * LANES));
    store(z + i, a);
    store(z + i + LANES, b);
    store(z + i + 2 * LANES, c);
    store(z + i + 3 * LANES, d);
  }
  for (; i + LANES <= n; i += LANES) store(z + i, multiply(load(x + i), load(y + i)));
  if (i < n) {
    mask rest = first_lanes(n - i);
    store_part(z + i, rest, multiply(load_part(x + i, rest), load_part(y + i, rest)));
  }
  return 0;
}

// The same with streaming stores: a result too large for the cache need not read its lines first.
static int64_t vmul_past_cache(const element *x, const element *y, element *z, int64_t n) {
  int64_t i = (int64_t)(-(uintptr_t)z % BYTES / sizeof(element));
  if (i > n) i = n;
  vmul(x, y, z, i);
  for (; i + 4 * LANES <= n; i += 4 * LANES) {
    vector a = multiply(load(x + i), load(y + i));
    vector b = multiply(load(x + i + LANES), load(y + i + LANES));
    vector c = multiply(load(x + i + 2 * LANES), load(y + i + 2 * LANES));
    vector d = multiply(load(x + i + 3 * LANES), load(y + i + 3 * LANES));
    store_past_cache(z + i, a);
    store_past_cache(z + i + LANES, b);
    store_past_cache(z + i + 2 * LANES, c);
    store_past_cache(z + i + 3 * LANES, d);
  }
  _mm_sfence();
  return vmul(x + i, y + i, z + i, n - i);
}
