// Primitives of oneDNN, each made for one shape and kept. What is made of a shape, `fill` says, in the file behind.
//
// A primitive takes a millisecond to make, so that they are kept in slots, of which the one that was used longest ago
// is made anew where a shape has none. A slot serves one thread at a time, since it holds the memory that the
// primitive works in; another thread that wants the same shape gets a slot of its own. One lock is held while slots are
// looked through and while primitives are made, never while one runs. A fork waits for it, so that the child finds
// neither it nor a lock of oneDNN's taken; slots that other threads had taken are free in the child.

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SETUP, SOFTMAX, LAYER_NORM, LAYER_NORM_PLAIN, LSTM, GRU };
enum { SLOTS = 64, MOST = 10, MOST_MOVES = 2, MOST_AREAS = 6, SIZES = 5, OUT_OF_MEMORY = 1 };

// Values of dnnl_types.h, the same in all releases of version 3.
enum {
  CPU = 1, INFERENCE = 96, SOFTMAX_ACCURATE = 0x30000, USE_SCALE = 2, USE_SHIFT = 4,
  FLOAT32 = 3, SCRATCHPAD_OF_USER = 1, IN_ORDER = 1, SCRATCHPAD_DESCRIPTION = 136,
  SOURCE = 1, SOURCE_STATE = 2, SOURCE_CELL = 3, DESTINATION = 17, DESTINATION_STATE = 18, DESTINATION_CELL = 19,
  WEIGHTS = 33, WEIGHTS_OF_STATE = 34, BIAS = 41, SCALE = 51, SHIFT = 52, SCRATCHPAD = 80,
  ANY = 1, DESCRIPTION_OF = 255, LEFT_TO_RIGHT = 1,
};

typedef void *object;  // of oneDNN's
typedef struct { int place; object memory; } argument;

// Given once, in the order of FUNCTIONS in primitives.py.
static struct {
  int (*get_threads)(void);
  void (*set_threads)(int);
  int (*engine_create)(object *, int, size_t);
  int (*stream_create)(object *, object, unsigned);
  int (*stream_destroy)(object);
  int (*attr_create)(object *);
  int (*attr_destroy)(object);
  int (*attr_set_scratchpad_mode)(object, int);
  int (*memory_desc_create_with_strides)(object *, int, const int64_t *, int, const int64_t *);
  int (*memory_desc_destroy)(object);
  size_t (*memory_desc_get_size)(object);
  int (*memory_create)(object *, object, object, void *);
  int (*memory_destroy)(object);
  int (*memory_set_data_handle)(object, void *);
  int (*softmax_desc_create)(object *, object, int, int, object, object, int, object);
  int (*layer_norm_desc_create)(object *, object, int, object, object, object, float, unsigned, object);
  int (*memory_desc_create_with_tag)(object *, int, const int64_t *, int, int);
  int (*lstm_desc_create)(object *, object, int, int, object, object, object, object, object, object, object, object,
                          object, object, object, unsigned, object);
  int (*gru_desc_create)(object *, object, int, int, object, object, object, object, object, object, object, unsigned,
                         object);
  int (*reorder_desc_create)(object *, object, object, object, object, object);
  object (*desc_query)(object, int, int);
  int (*desc_destroy)(object);
  int (*primitive_create)(object *, object);
  int (*primitive_destroy)(object);
  int (*primitive_execute)(object, object, int, const argument *);
} dnnl;

typedef struct { int64_t kind, sizes[SIZES]; float eps; } shape;

typedef struct {
  shape of;
  uint64_t used;  // when, in calls; 0 is never
  int taken;
  object stream, primitive;
  void *areas[MOST_AREAS];  // of the slot's own, the first one of them what the primitive works in
  int count;
  argument arguments[MOST];  // the scratchpad last, if there is one
  int moves;
  struct { object primitive, from; argument arguments[2]; } moved[MOST_MOVES];  // what is put in another order before
} slot;

static int fill(slot *new, const shape *of);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static object engine;
static slot slots[SLOTS];
static uint64_t calls;

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void in_parent(void) { pthread_mutex_unlock(&lock); }
static void in_child(void) {
  for (int i = 0; i < SLOTS; i++) slots[i].taken = 0;
  pthread_mutex_unlock(&lock);
}

static int64_t setup(void *const *functions) {
  int64_t status = 0;
  pthread_mutex_lock(&lock);
  if (!engine) {
    memcpy(&dnnl, functions, sizeof dnnl);
    status = dnnl.engine_create(&engine, CPU, 0);
    if (!status) status = pthread_atfork(before_fork, in_parent, in_child) ? OUT_OF_MEMORY : 0;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

static int same(const shape *a, const shape *b) {
  return a->kind == b->kind && !memcmp(a->sizes, b->sizes, sizeof a->sizes) && !memcmp(&a->eps, &b->eps, sizeof a->eps);
}

static void unmake(slot *old) {
  for (int i = 0; i < old->count; i++) dnnl.memory_destroy(old->arguments[i].memory);
  for (int i = 0; i < old->moves; i++) {
    if (old->moved[i].from) dnnl.memory_destroy(old->moved[i].from);
    if (old->moved[i].primitive) dnnl.primitive_destroy(old->moved[i].primitive);
  }
  if (old->primitive) dnnl.primitive_destroy(old->primitive);
  if (old->stream) dnnl.stream_destroy(old->stream);
  for (int i = 0; i < MOST_AREAS; i++) free(old->areas[i]);
  memset(old, 0, sizeof *old);
}

static int add_argument(slot *new, int place, object description, void *data) {
  argument *added = &new->arguments[new->count];
  added->place = place;
  int status = dnnl.memory_create(&added->memory, description, engine, data);
  if (!status) new->count++;
  return status;
}

// Memory of the slot's own: 0, or what oneDNN calls it when there is none.
static int area(void **found, size_t size) {
  *found = aligned_alloc(64, (size + 64) / 64 * 64);
  return *found ? 0 : OUT_OF_MEMORY;
}

// The primitive of a description, its stream, and what it works in.
static int add_primitive(slot *new, object described) {
  int status = dnnl.primitive_create(&new->primitive, described);
  return status ? status : dnnl.stream_create(&new->stream, engine, IN_ORDER);
}

static int add_scratchpad(slot *new, object described) {
  object needed = dnnl.desc_query(described, SCRATCHPAD_DESCRIPTION, 0);
  size_t size = needed ? dnnl.memory_desc_get_size(needed) : 0;
  if (!size) return 0;
  int status = area(&new->areas[0], size);
  return status ? status : add_argument(new, SCRATCHPAD, needed, new->areas[0]);
}

static int make(slot *new, const shape *of) {
  memset(new, 0, sizeof *new);
  new->of = *of;
  int status = fill(new, of);
  if (status) unmake(new);
  return status;
}

// A slot for a shape, or `spare` where others have taken all.
static int take(slot **found, slot *spare, const shape *of) {
  slot *oldest = NULL;
  int status = 0;
  pthread_mutex_lock(&lock);
  *found = NULL;
  for (slot *each = slots; each < slots + SLOTS; each++) {
    if (each->taken) continue;
    if (each->used && same(&each->of, of)) {
      *found = each;
      break;
    }
    if (!oldest || each->used < oldest->used) oldest = each;
  }
  if (!*found) {
    *found = oldest ? oldest : spare;
    if (oldest) unmake(oldest);
    status = make(*found, of);
  }
  if (!status) {
    (*found)->used = ++calls;
    (*found)->taken = 1;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

static void release(slot *used, slot *spare) {
  pthread_mutex_lock(&lock);
  used->taken = 0;
  if (used == spare) unmake(spare);
  pthread_mutex_unlock(&lock);
}

static int64_t failed(int status) {
  return status == 0 ? 0 : status == OUT_OF_MEMORY ? NO_MEMORY : UNKNOWN - status;
}

// Does what a slot was made for; `given` arrays go to its first arguments, those to be put in order to `moved`.
static int run_taken(slot *own, void *const *arrays, int given, void *const *moved) {
  int status = 0;
  for (int i = 0; i < given && !status; i++)
    status = dnnl.memory_set_data_handle(own->arguments[i].memory, arrays[i]);
  for (int i = 0; i < own->moves && !status; i++) {
    status = dnnl.memory_set_data_handle(own->moved[i].from, moved[i]);
    if (!status) status = dnnl.primitive_execute(own->moved[i].primitive, own->stream, 2, own->moved[i].arguments);
  }
  return status ? status : dnnl.primitive_execute(own->primitive, own->stream, own->count, own->arguments);
}
