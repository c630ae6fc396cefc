// LSTM and GRU by primitives of oneDNN, which take weights in a layout of their own: each call reorders them.

#include <math.h>

// Fields of a shape: steps, rows of the batch, inputs, hidden units, and whether there is an initial state.
enum { STEPS, BATCH, INPUTS, HIDDEN, INITIAL };
enum { WORKING, REORDERED_WEIGHTS, REORDERED_WEIGHTS_OF_STATE, BIASES, SWAPPED, SWAPPED_OF_STATE };  // areas
enum { BIAS_GATES = 4 };

// Descriptors of a primitive; the caller destroys all of them.
typedef struct { object attributes, x, y, state, bias, given[2], preferred[2], described; } parts;

static int plain(object *made, int count, const int64_t *sizes) {
  int64_t strides[4] = {1, 1, 1, 1};
  for (int i = count - 2; i >= 0; i--) strides[i] = strides[i + 1] * sizes[i + 1];
  return dnnl.memory_desc_create_with_strides(made, count, sizes, FLOAT32, strides);
}

static int describe(const shape *of, parts *p) {
  const int64_t *s = of->sizes, gates = of->kind == LSTM ? 4 : 3;
  int status;
  if ((status = dnnl.attr_create(&p->attributes))) return status;
  if ((status = dnnl.attr_set_scratchpad_mode(p->attributes, SCRATCHPAD_OF_USER))) return status;
  if ((status = plain(&p->x, 3, (int64_t[]){s[STEPS], s[BATCH], s[INPUTS]}))) return status;
  if ((status = plain(&p->y, 3, (int64_t[]){s[STEPS], s[BATCH], s[HIDDEN]}))) return status;
  if ((status = plain(&p->state, 4, (int64_t[]){1, 1, s[BATCH], s[HIDDEN]}))) return status;
  if ((status = plain(&p->bias, 4, (int64_t[]){1, 1, BIAS_GATES, s[HIDDEN]}))) return status;
  for (int i = 0; i < 2; i++) {
    int64_t n = i ? s[HIDDEN] : s[INPUTS], all = gates * s[HIDDEN] * n;
    int64_t sizes[] = {1, 1, n, gates, s[HIDDEN]}, strides[] = {all, all, 1, s[HIDDEN] * n, n};
    if ((status = dnnl.memory_desc_create_with_strides(&p->given[i], 5, sizes, FLOAT32, strides))) return status;
    if ((status = dnnl.memory_desc_create_with_tag(&p->preferred[i], 5, sizes, FLOAT32, ANY))) return status;
  }
  object before = s[INITIAL] ? p->state : NULL;
  if (of->kind == LSTM)
    return dnnl.lstm_desc_create(&p->described, engine, INFERENCE, LEFT_TO_RIGHT, p->x, before, before, p->preferred[0],
                                 p->preferred[1], NULL, NULL, p->bias, p->y, p->state, p->state, 0, p->attributes);
  return dnnl.gru_desc_create(&p->described, engine, INFERENCE, LEFT_TO_RIGHT, p->x, before, p->preferred[0], p->preferred[1],
                              p->bias, p->y, p->state, 0, p->attributes);
}

// Weights of inputs or of the state in the primitive's layout, and the reorder that converts them.
static int add_weights(slot *new, const parts *p, int i) {
  int status, place = i ? WEIGHTS_OF_STATE : WEIGHTS;
  object wanted = dnnl.desc_query(p->described, DESCRIPTION_OF, place), described = NULL;
  void **to = &new->areas[REORDERED_WEIGHTS + i];
  if ((status = area(to, dnnl.memory_desc_get_size(wanted)))) return status;
  if ((status = add_argument(new, place, wanted, *to))) return status;
  object memory = new->arguments[new->count - 1].memory;
  new->moves++;
  if ((status = dnnl.memory_create(&new->moved[i].from, p->given[i], engine, NULL))) return status;
  if ((status = dnnl.reorder_desc_create(&described, p->given[i], engine, wanted, engine, NULL))) return status;
  status = dnnl.primitive_create(&new->moved[i].primitive, described);
  dnnl.desc_destroy(described);
  new->moved[i].arguments[0] = (argument){SOURCE, new->moved[i].from};
  new->moved[i].arguments[1] = (argument){DESTINATION, memory};
  return status;
}

static int make_of(slot *new, const parts *p) {
  const int64_t *s = new->of.sizes;
  int status, is_lstm = new->of.kind == LSTM;
  if ((status = add_primitive(new, p->described))) return status;
  if ((status = add_argument(new, SOURCE, p->x, NULL))) return status;
  if ((status = add_argument(new, DESTINATION, p->y, NULL))) return status;
  if ((status = add_argument(new, DESTINATION_STATE, p->state, NULL))) return status;
  if (is_lstm && (status = add_argument(new, DESTINATION_CELL, p->state, NULL))) return status;
  if (s[INITIAL] && (status = add_argument(new, SOURCE_STATE, p->state, NULL))) return status;
  if (s[INITIAL] && is_lstm && (status = add_argument(new, SOURCE_CELL, p->state, NULL))) return status;
  if ((status = area(&new->areas[BIASES], BIAS_GATES * s[HIDDEN] * sizeof(float)))) return status;
  if ((status = add_argument(new, BIAS, p->bias, new->areas[BIASES]))) return status;
  for (int i = 0; i < 2; i++) {
    if ((status = add_weights(new, p, i))) return status;
    if (!is_lstm && (status = area(&new->areas[SWAPPED + i], 3 * s[HIDDEN] * s[INPUTS + i * (HIDDEN - INPUTS)] * sizeof(float))))
      return status;
  }
  return add_scratchpad(new, p->described);
}

static int fill(slot *new, const shape *of) {
  parts p = {0};
  int status = describe(of, &p);
  if (!status) status = make_of(new, &p);
  object descriptions[] = {p.x, p.y, p.state, p.bias, p.given[0], p.given[1], p.preferred[0], p.preferred[1]};
  for (int i = 0; i < 8; i++)
    if (descriptions[i]) dnnl.memory_desc_destroy(descriptions[i]);
  if (p.described) dnnl.desc_destroy(p.described);
  if (p.attributes) dnnl.attr_destroy(p.attributes);
  return status;
}

typedef struct { const float *x, *weights[2], *biases[2], *h0, *c0; float *y, *h_n, *c_n; } arrays_of;

// Gates of a GRU are update, reset and candidate here, where the schema has reset first; all biases are one array, to
// which a GRU appends the bias that the reset gate scales.
static void put_biases(int is_lstm, const arrays_of *a, int64_t hidden, float *bias) {
  for (int64_t gate = 0; gate < BIAS_GATES; gate++)
    for (int64_t j = 0; j < hidden; j++) {
      int64_t from = (is_lstm || gate > 1 ? gate < 3 || is_lstm ? gate : 2 : 1 - gate) * hidden + j;
      float of_x = a->biases[0] ? a->biases[0][from] : 0, of_h = a->biases[1] ? a->biases[1][from] : 0;
      bias[gate * hidden + j] = is_lstm || gate < 2 ? of_x + of_h : gate == 2 ? of_x : of_h;
    }
}

static int layer(const shape *of, const arrays_of *a) {
  slot *own, spare;
  int is_lstm = of->kind == LSTM, given = 0, status = take(&own, &spare, of);
  if (status) return status;
  int64_t hidden = of->sizes[HIDDEN];
  void *arrays[6], *weights[2];
  put_biases(is_lstm, a, hidden, own->areas[BIASES]);
  for (int i = 0; i < 2; i++) {
    int64_t gate = hidden * (i ? hidden : of->sizes[INPUTS]);
    weights[i] = (void *)a->weights[i];
    if (is_lstm) continue;
    float *swapped = own->areas[SWAPPED + i];
    memcpy(swapped, a->weights[i] + gate, gate * sizeof(float));
    memcpy(swapped + gate, a->weights[i], gate * sizeof(float));
    memcpy(swapped + 2 * gate, a->weights[i] + 2 * gate, gate * sizeof(float));
    weights[i] = swapped;
  }
  arrays[given++] = (void *)a->x;
  arrays[given++] = a->y;
  arrays[given++] = a->h_n;
  if (is_lstm) arrays[given++] = a->c_n;
  if (of->sizes[INITIAL]) arrays[given++] = (void *)a->h0;
  if (of->sizes[INITIAL] && is_lstm) arrays[given++] = (void *)a->c0;
  status = run_taken(own, arrays, given, weights);
  release(own, &spare);
  return status;
}

static int all_finite(const float *x, int64_t n) {
  int32_t found = 1;
  for (int64_t i = 0; i < n; i++) found &= fabsf(x[i]) <= 3.4028235e38f;
  return found;
}

// Without an initial state, the first step must not read the weights of the state, which may be infinite: its primitive
// is created with other weights then.
static int first_apart(shape *of, arrays_of *a) {
  int64_t hidden = of->sizes[HIDDEN], states = of->sizes[BATCH] * hidden, steps = of->sizes[STEPS];
  float *none = calloc(4 * hidden * hidden, sizeof(float)), *kept = malloc((2 * states + 1) * sizeof(float));
  const float *weights = a->weights[1];
  int status = none && kept ? 0 : OUT_OF_MEMORY;
  if (!status) {
    of->sizes[STEPS] = 1;
    a->weights[1] = none;
    status = layer(of, a);
  }
  if (!status && steps > 1) {
    memcpy(kept, a->h_n, states * sizeof(float));
    if (of->kind == LSTM) memcpy(kept + states, a->c_n, states * sizeof(float));
    of->sizes[STEPS] = steps - 1;
    of->sizes[INITIAL] = 1;
    arrays_of later = *a;
    later.weights[1] = weights;
    later.x += of->sizes[BATCH] * of->sizes[INPUTS];
    later.y += states;
    later.h0 = kept;
    later.c0 = kept + states;
    status = layer(of, &later);
  }
  free(none);
  free(kept);
  return status;
}

// Rows begin..end of the batch: gathered over all steps before, and scattered back, unless they are the whole batch.
static int rows_of(shape *of, arrays_of *a, int64_t begin, int64_t end) {
  int64_t steps = of->sizes[STEPS], batch = of->sizes[BATCH], inputs = of->sizes[INPUTS], hidden = of->sizes[HIDDEN];
  int64_t rows = end - begin, gates = of->kind == LSTM ? 4 : 3;
  float *gathered = NULL, *y = a->y;
  if (rows < batch) {
    gathered = malloc((steps * rows * (inputs + hidden)) * sizeof(float));
    if (!gathered) return OUT_OF_MEMORY;
    for (int64_t t = 0; t < steps; t++)
      memcpy(gathered + t * rows * inputs, a->x + (t * batch + begin) * inputs, rows * inputs * sizeof(float));
    a->x = gathered;
    a->y = gathered + steps * rows * inputs;
    if (of->sizes[INITIAL]) {
      a->h0 += begin * hidden;
      a->c0 += begin * hidden;
    }
    a->h_n += begin * hidden;
    a->c_n += begin * hidden;
    of->sizes[BATCH] = rows;
  }
  int sure = of->sizes[INITIAL] || all_finite(a->weights[1], gates * hidden * hidden);
  float *results = a->y;
  int status = sure ? layer(of, a) : first_apart(of, a);
  for (int64_t t = 0; t < steps && gathered; t++)
    memcpy(y + (t * batch + begin) * hidden, results + t * rows * hidden, rows * hidden * sizeof(float));
  free(gathered);
  return status;
}

static int64_t recurrence(int64_t kind, void *x, void *w_ih, void *w_hh, void *b_ih, void *b_hh, void *h0, void *c0,
                          void *y, void *h_n, void *c_n, int64_t steps, int64_t batch, int64_t inputs, int64_t hidden,
                          int64_t biased, int64_t initial, int64_t begin, int64_t end) {
  if (kind == SETUP) return setup(x);
  arrays_of a = {x, {w_ih, w_hh}, {biased ? b_ih : NULL, biased ? b_hh : NULL}, h0, c0, y, h_n, c_n};
  int64_t first = begin * hidden;
  size_t states = (end - begin) * hidden * sizeof(float);
  if (!states) return 0;
  if (!steps) {
    for (int i = 0; i < (kind == LSTM ? 2 : 1); i++) {
      if (initial) memcpy((i ? a.c_n : a.h_n) + first, (i ? a.c0 : a.h0) + first, states);
      else memset((i ? a.c_n : a.h_n) + first, 0, states);
    }
    return 0;
  }
  float *nothing = NULL;
  if (!inputs) {  // a constant zero
    nothing = calloc(steps * batch + 4 * hidden, sizeof(float));
    if (!nothing) return failed(OUT_OF_MEMORY);
    a.x = a.weights[0] = nothing;
    inputs = 1;
  }
  shape of = {kind, {steps, batch, inputs, hidden, initial}, 0};
  int threads = dnnl.get_threads();
  dnnl.set_threads(1);
  int status = rows_of(&of, &a, begin, end);
  dnnl.set_threads(threads);
  free(nothing);
  return failed(status);
}
