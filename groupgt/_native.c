/* The loops that touch every result, in C: rankings held in memory, and the bytes of TREC runs, are compared with the few
   ids of their own query. They read str objects and bytes, and return arrays as bytes, see groupgt/native.py. What is
   not plain (another type, a character that no id may hold, a line that is not surely a result) is left to the caller,
   who reads it in Python and says what is wrong. Nothing here decides what counts, and nothing here is needed: without
   it Python does the same work. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#if defined(_MSC_VER)
#include <intrin.h>
#define __builtin_prefetch(address) ((void)(address))
#define INLINE static __forceinline
#else
#define INLINE static inline __attribute__((always_inline))
#endif

#ifndef SOURCE_DIGEST
#define SOURCE_DIGEST ""
#endif

/* An id may be this long in UTF-8, as everywhere else. */
#define LONGEST_ID 65536

/* ---------------------------------------------------------------- bytes and memory */
typedef unsigned char byte;
/* UTF-8, somewhere. */
typedef struct { const byte *data; size_t size; } text;
#define ONES 0x0101010101010101ull
#define TOPS 0x8080808080808080ull

static inline uint64_t load8(const byte *at) {
    uint64_t word;
    memcpy(&word, at, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* Up to eight bytes as one word; no others stand in it but blanks. */
static inline uint64_t load_short(const byte *at, size_t size) {
    uint32_t low, high;
    if (size >= 4) {
        memcpy(&low, at, 4);
        memcpy(&high, at + size - 4, 4);
        return low | (uint64_t)high << 32;
    }
    if (size)
        return at[0] | (uint64_t)at[size / 2] << 8 | (uint64_t)at[size - 1] << 16 | 0x2020202020000000ull;
    return 0x2020202020202020ull;
}

/* Which byte of a word holds the lowest bit that is set. */
static inline size_t lowest_byte(uint64_t word) {
#if defined(_MSC_VER)
    unsigned long place;
    _BitScanForward64(&place, word);
    return place / 8;
#else
    return (size_t)__builtin_ctzll(word) / 8;
#endif
}

/* A hash of a text. `odd` is not 0 where a byte is no visible character of ASCII and no blank. */
static inline uint64_t digest(text given, uint64_t seed, uint64_t *odd) {
    /* The size reaches every bit: a letter and a size that differ by as much would cancel out ("2" and "12"). */
    uint64_t hash = seed ^ given.size * 0x9e3779b97f4a7c15ull, strange = 0;
    uint64_t word = given.size < 8 ? load_short(given.data, given.size) : load8(given.data);
    for (size_t at = 8;; at += 8) {
        strange |= (word - 0x20 * ONES) | (word + ONES) | word;
        hash = (hash ^ word) * 0x880355f21e6d1965ull;
        hash ^= hash >> 32;
        if (at >= given.size) break;
        word = load8(given.data + (at + 8 <= given.size ? at : given.size - 8));
    }
    *odd = strange & TOPS;
    return hash * 0x2127599bf4325c37ull;
}

/* Whether a text is UTF-8 without what no id may hold: controls, surrogates, separators of lines and paragraphs, byte
   order marks; and that it is not of blanks alone. */
static int is_clean(text given) {
    static const uint32_t least[] = {0x20, 0xa0, 0x800, 0x10000};
    int visible = 0;
    for (const byte *at = given.data, *end = at + given.size; at < end;) {
        uint32_t letter = *at++;
        int more = letter < 0xc0 ? 0 : letter < 0xe0 ? 1 : letter < 0xf0 ? 2 : 3;
        if ((letter >= 0x7f && letter < 0xc0) || letter > 0xf4 || end - at < more) return 0;
        letter &= more ? 0x3f >> more : 0xff;
        for (int left = more; left; left--, at++) {
            if ((*at & 0xc0) != 0x80) return 0;
            letter = letter << 6 | (*at & 0x3f);
        }
        if (letter < least[more] || letter > 0x10ffff || (letter >= 0xd800 && letter < 0xe000) || letter == 0x2028 ||
            letter == 0x2029 || letter == 0xfeff)
            return 0;
        visible |= letter != 0x20 && letter != 0xa0 && letter != 0x1680 && (letter < 0x2000 || letter > 0x200a) &&
                   letter != 0x202f && letter != 0x205f && letter != 0x3000;
    }
    return visible;
}

/* Memory that grows; sizes are in bytes. */
typedef struct { char *data; size_t size, room; } pile;

/* Room for `size` more bytes at the end; NULL if out of memory. */
static inline void *more(pile *all, size_t size) {
    if (size > all->room - all->size) {
        size_t room = all->room * 2 + size + 1024;
        char *data = room < size ? NULL : realloc(all->data, room);
        if (!data) return NULL;
        all->data = data;
        all->room = room;
    }
    all->size += size;
    return all->data + all->size - size;
}

static PyObject *bytes_of(const pile *all) {
    return PyBytes_FromStringAndSize(all->data, (Py_ssize_t)all->size);
}

/* The hashes that came before; `size` is a power of two, or 0. */
typedef struct { uint64_t *slots; size_t size, count; } hashes;

static inline uint64_t *slot_of(const hashes *self, uint64_t hash) {
    size_t at = hash >> 32 & (self->size - 1);
    while (self->slots[at] && self->slots[at] != hash)
        at = (at + 1) & (self->size - 1);
    return self->slots + at;
}

/* Takes a hash: 1 where it came before; 0 where it did not; −1 without memory. */
static inline int is_seen(hashes *self, uint64_t hash) {
    if (2 * self->count >= self->size) {
        hashes wider = {NULL, self->size ? 2 * self->size : 64, self->count};
        if (!(wider.slots = calloc(wider.size, 8))) return -1;
        for (size_t at = 0; at < self->size; at++)
            if (self->slots[at])
                *slot_of(&wider, self->slots[at]) = self->slots[at];
        free(self->slots);
        *self = wider;
    }
    uint64_t *slot = slot_of(self, hash | 1);
    if (*slot) return 1;
    self->count++;
    *slot = hash | 1;
    return 0;
}

/* Makes ready for another query: memory that many hashes needed is not cleared for few. */
static void forget(hashes *self) {
    if (self->size > 64 * (self->count + 64)) {
        free(self->slots);
        *self = (hashes){0};
    } else if (self->count) {
        memset(self->slots, 0, self->size * 8);
    }
    self->count = 0;
}

/* A row of what is returned. */
static inline int keep_row(pile *out, int64_t one, int64_t two, int64_t three, int64_t four, int64_t five) {
    int64_t row[] = {one, two, three, four, five}, *to = more(out, sizeof row);
    return to ? (memcpy(to, row, sizeof row), 0) : -1;
}

/* ---------------------------------------------------------------- text of str objects */
/* A str beyond ASCII that was asked for its UTF-8 keeps a copy of it as long as it lives. So after the first such one
   all are copied letter by letter into memory of our own. */
typedef struct { int wide; pile copy; } reader;

static int read_wide(reader *self, PyObject *name, text *out) {
    Py_ssize_t length = PyUnicode_GetLength(name), size, count = 0, room = 2 * length + 2;
    if (length < 0 || length > LONGEST_ID) return length < 0 ? -1 : 0;
    self->copy.size = 0;
    wchar_t *letters = more(&self->copy, (size_t)room * sizeof(wchar_t) + (size_t)length * 4);
    if (!letters || (size = PyUnicode_AsWideChar(name, letters, room)) < 0) return -1;
    byte *to = (byte *)(letters + room);
    out->data = to;
    for (Py_ssize_t at = 0; at < size; at++, count++) {
        uint32_t letter = (uint32_t)letters[at];
        if (sizeof(wchar_t) == 2 && letter >> 10 == 0x36 && at + 1 < size && (letters[at + 1] & 0xfc00) == 0xdc00)
            letter = 0x10000 + ((letter & 0x3ff) << 10 | ((uint32_t)letters[++at] & 0x3ff));
        if ((letter >= 0xd800 && letter < 0xe000) || count == length) return 0;
        if (letter < 0x80) {
            *to++ = (byte)letter;
            continue;
        }
        if (letter >= 0x10000) {
            *to++ = (byte)(0xf0 | letter >> 18);
            *to++ = (byte)(0x80 | (letter >> 12 & 0x3f));
        } else if (letter >= 0x800) {
            *to++ = (byte)(0xe0 | letter >> 12);
        }
        *to++ = (byte)(letter < 0x800 ? 0xc0 | letter >> 6 : 0x80 | (letter >> 6 & 0x3f));
        *to++ = (byte)(0x80 | (letter & 0x3f));
    }
    out->size = (size_t)(to - out->data);
    /* Where letters are 16 bits wide, two lone surrogates side by side look like one letter. */
    return count == length;
}

/* 1 with an id and its hash, which stay until the next is read; 0 where it is not surely an id, and Python must look at
   it; −1 with an exception. */
INLINE int read_id(reader *self, PyObject *name, uint64_t seed, text *out, uint64_t *hash) {
    Py_ssize_t size = 0;
    uint64_t odd;
    int done = PyUnicode_CheckExact(name);
    if (done && self->wide) {
        done = read_wide(self, name, out);
    } else if (done) {
        *out = (text){(const byte *)PyUnicode_AsUTF8AndSize(name, &size), 0};
        out->size = (size_t)size;
        done = out->data ? 1 : PyErr_ExceptionMatches(PyExc_UnicodeError) ? 0 : -1;
        if (!done)
            PyErr_Clear();
    }
    if (done <= 0) return done;
    *hash = digest(*out, seed, &odd);
    if (odd) {
        self->wide = 1;
        if (!is_clean(*out)) return 0;
    }
    return out->size && out->data[0] != ' ' && out->size <= LONGEST_ID;
}

/* ---------------------------------------------------------------- the index of ground truth */
/* An index is one piece of bytes, so that it can be kept and shared: a head, a table of queries found by the hash of
   their ids, a row for each key, sorted by hash within its query, the place of each query in the table, and the bytes
   of all texts. What is read from it is held against its size. */

#define MARK 0x31657669746e4747ull
typedef struct { uint64_t mark, queries, keys, slots, letters, seed; } head;
typedef struct { uint64_t hash, at; uint32_t number, size; } text_row;

/* The number of a query from 1 on (0 where the slot is free); its keys from `first` to `last`, of which each has a bit in
   the filter. */
typedef struct {
    text_row own;
    uint64_t filter;
    uint32_t first, last;
} query_row;

typedef struct {
    const head *top;
    const query_row *table;
    const text_row *keys;
    const uint32_t *places;
    const byte *letters;
} index_view;

static uint64_t index_size(const head *top) {
    return sizeof(head) + top->slots * sizeof(query_row) + top->keys * sizeof(text_row) + top->queries * 4 +
           top->letters;
}

static int view_index(const Py_buffer *given, index_view *out) {
    const head *top = given->buf;
    if ((size_t)given->len < sizeof(head) || (uintptr_t)top % 8 || top->mark != MARK || top->queries >= UINT32_MAX ||
        top->keys >= UINT32_MAX || !top->slots || top->slots > (uint64_t)1 << 34 || top->slots & (top->slots - 1) ||
        top->letters > (uint64_t)1 << 60 || index_size(top) != (uint64_t)given->len) {
        PyErr_SetString(PyExc_ValueError, "expected an index");
        return -1;
    }
    out->top = top;
    out->table = (const query_row *)(top + 1);
    out->keys = (const text_row *)(out->table + top->slots);
    out->places = (const uint32_t *)(out->keys + top->keys);
    out->letters = (const byte *)(out->places + top->queries);
    return 0;
}

static inline int is_inside(const index_view *index, const text_row *row) {
    return row->at <= index->top->letters && row->size <= index->top->letters - row->at;
}

static inline int is_text(const index_view *index, const text_row *row, uint64_t hash, text given) {
    return row->hash == hash && row->size == given.size && is_inside(index, row) &&
           !memcmp(index->letters + row->at, given.data, given.size);
}

/* The row of the key that a result of a query is; NULL where it is none. */
INLINE const text_row *key_of(const index_view *index, const query_row *query, uint64_t hash, text id) {
    uint64_t low = query->first, high = query->last;
    if (!(query->filter >> (hash >> 58) & 1) || high > index->top->keys) return NULL;
    while (high > low + 8) {
        uint64_t middle = (low + high) / 2;
        if (index->keys[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (high = query->last; low < high && index->keys[low].hash <= hash; low++)
        if (is_text(index, index->keys + low, hash, id)) return index->keys + low;
    return NULL;
}

/* The row of a query; NULL where it has no ground truth. */
static const query_row *query_of(const index_view *index, text qid) {
    uint64_t odd, last = index->top->slots - 1, hash = digest(qid, index->top->seed, &odd);
    for (uint64_t at = hash >> 32 & last, tried = 0; tried <= last; at = (at + 1) & last, tried++) {
        const query_row *row = index->table + at;
        if (!row->own.number || row->own.number > index->top->queries) return NULL;
        if (is_text(index, &row->own, hash, qid)) return row;
    }
    return NULL;
}

static int by_hash(const void *one, const void *other) {
    const text_row *left = one, *right = other;
    int after = left->hash != right->hash ? left->hash > right->hash : left->number > right->number;
    return after ? 1 : left->number == right->number ? 0 : -1;
}

/* Sorts the keys of a query, few by insertion, and leaves the first of equal ones; returns how many stay. */
static size_t distinct(text_row *rows, size_t size, const char *letters, int64_t *firsts) {
    size_t kept = 0;
    if (size > 16)
        qsort(rows, size, sizeof(text_row), by_hash);
    for (size_t at = 0; at < size; at++) {
        text_row row = rows[at];
        size_t to = kept, before;
        while (to && rows[to - 1].hash > row.hash)
            to--;
        for (before = to; before && rows[before - 1].hash == row.hash; before--)
            if (rows[before - 1].size == row.size && !memcmp(letters + rows[before - 1].at, letters + row.at, row.size))
                break;
        if (before && rows[before - 1].hash == row.hash) {
            firsts[row.number] = rows[before - 1].number;
            continue;
        }
        for (before = kept++; before > to; before--)
            rows[before] = rows[before - 1];
        rows[to] = row;
    }
    return kept;
}

/* How many a list or a tuple holds; −1 for anything else. */
static Py_ssize_t size_of(PyObject *all) {
    return PyList_CheckExact(all) ? PyList_Size(all) : PyTuple_CheckExact(all) ? PyTuple_Size(all) : -1;
}

static inline PyObject *item(PyObject *all, Py_ssize_t at) {
    return PyList_CheckExact(all) ? PyList_GetItem(all, at) : PyTuple_GetItem(all, at);
}

/* 1 with the finite number of a float (numpy's doubles are some) or an int; 0 for anything else. */
INLINE int number_of(PyObject *value, double *out) {
    if (!PyFloat_Check(value) && !PyLong_CheckExact(value)) return 0;
    *out = PyFloat_AsDouble(value);
    /* Integers from 2^53 on may have more digits than a double, and Python compares all of them. */
    if (*out == -1 && PyErr_Occurred()) return PyErr_Clear(), 0;
    return isfinite(*out) && (PyFloat_Check(value) || fabs(*out) < 9007199254740992.0);
}

enum { QUERIES, KEYS, LETTERS, GROUPS, SIZES, FIRSTS, GRADES, PILES };
typedef struct {
    head top;
    reader names;
    pile piles[PILES];
    PyObject *ids;
    int repeated, graded; /* whether two queries have one id; whether rows are dicts */
} builder;

/* Keeps an id under a number: 1; 0 where it is not plain; −1 with an exception, or without memory. */
static int keep_id(builder *self, PyObject *name, uint64_t number, text_row *row) {
    text id;
    uint64_t hash;
    int done = read_id(&self->names, name, self->top.seed, &id, &hash);
    if (done <= 0) return done;
    char *to = more(&self->piles[LETTERS], id.size);
    if (!to || number >= UINT32_MAX) return -1;
    *row = (text_row){hash, (uint64_t)(to - self->piles[LETTERS].data), (uint32_t)number, (uint32_t)id.size};
    memcpy(to, id.data, id.size);
    return 1;
}

/* Reads the groups of one query: 1; 0 where they are not plain; −1 with an exception, or without memory. */
static int keep_query(builder *self, PyObject *qid, PyObject *groups) {
    pile *firsts = &self->piles[FIRSTS];
    query_row *query = more(&self->piles[QUERIES], sizeof *query);
    int64_t *count = more(&self->piles[GROUPS], 8), *size, *first;
    size_t before = firsts->size / 8, own;
    if (!query || !count) return -1;
    *count = PyDict_CheckExact(groups) != self->graded ? -1 : self->graded ? PyDict_Size(groups) : size_of(groups);
    for (Py_ssize_t group = 0, last = (Py_ssize_t)*count, state = 0; group < last; group++) {
        PyObject *cells = self->graded ? NULL : item(groups, group), *grade = NULL;
        if (self->graded && !PyDict_Next(groups, &state, &cells, &grade)) return 0;
        double *number = grade ? more(&self->piles[GRADES], 8) : NULL;
        if (!(size = more(&self->piles[SIZES], 8)) || (grade && !number)) return -1;
        Py_ssize_t end = (Py_ssize_t)(*size = grade ? 1 : size_of(cells));
        if (end < 1 || (grade && !number_of(grade, number))) return 0;
        for (Py_ssize_t cell = 0; cell < end; cell++) {
            PyObject *name = grade ? cells : item(cells, cell);
            text_row *row = more(&self->piles[KEYS], sizeof *row);
            if (!row || !(first = more(firsts, 8))) return -1;
            int done = keep_id(self, name, (uint64_t)(*first = (int64_t)(firsts->size / 8) - 1), row);
            if (done <= 0 || PyList_Append(self->ids, name)) return done ? -1 : 0;
        }
    }
    text_row *keys = (text_row *)self->piles[KEYS].data + self->top.keys;
    own = distinct(keys, firsts->size / 8 - before, self->piles[LETTERS].data, (int64_t *)firsts->data);
    *query = (query_row){.first = (uint32_t)self->top.keys, .last = (uint32_t)(self->top.keys + own)};
    self->top.keys += own;
    self->piles[KEYS].size = self->top.keys * sizeof(text_row);
    while (own--)
        query->filter |= (uint64_t)1 << (keys[own].hash >> 58);
    return *count < 0 ? 0 : keep_id(self, qid, ++self->top.queries, &query->own);
}

static PyObject *packed(builder *self) {
    index_view view = {.top = &self->top, .letters = (byte *)self->piles[LETTERS].data};
    PyObject *done = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)index_size(&self->top));
    char *to = done ? PyBytes_AsString(done) : NULL;
    if (!to) return NULL;
    query_row *table = (query_row *)(to + sizeof(head));
    text_row *keys = (text_row *)(table + self->top.slots);
    uint32_t *places = (uint32_t *)(keys + self->top.keys);
    memcpy(to, &self->top, sizeof(head));
    memset(table, 0, self->top.slots * sizeof(query_row));
    for (size_t query = 0; query < self->top.queries; query++) {
        const query_row *row = (query_row *)self->piles[QUERIES].data + query;
        uint64_t at = row->own.hash >> 32 & (self->top.slots - 1);
        for (; table[at].own.number; at = (at + 1) & (self->top.slots - 1))
            self->repeated |= is_text(&view, &table[at].own, row->own.hash, (text){view.letters + row->own.at, row->own.size});
        table[at] = *row;
        places[query] = (uint32_t)at;
    }
    if (self->top.keys)
        memcpy(keys, self->piles[KEYS].data, self->piles[KEYS].size);
    memcpy(places + self->top.queries, self->piles[LETTERS].data, self->top.letters);
    return done;
}

static PyObject *native_index(PyObject *module, PyObject *args) {
    PyObject *qids, *rows, *done = NULL;
    unsigned long long seed;
    if (!PyArg_ParseTuple(args, "O!O!K:index", &PyList_Type, &qids, &PyList_Type, &rows, &seed))
        return NULL;
    builder self = {.top = {MARK, 0, 0, 1, 0, seed}, .ids = PyList_New(0)};
    int plain = self.ids && more(&self.piles[LETTERS], 1) ? PyList_Size(qids) == PyList_Size(rows) : -1;
    self.graded = PyList_Size(rows) && PyDict_CheckExact(PyList_GetItem(rows, 0));
    for (Py_ssize_t query = 0; plain > 0 && query < PyList_Size(qids); query++)
        plain = keep_query(&self, PyList_GetItem(qids, query), PyList_GetItem(rows, query));
    while (2 * self.top.slots < 3 * self.top.queries + 2)
        self.top.slots *= 2;
    self.top.letters = self.piles[LETTERS].size;
    if (plain > 0)
        done = Py_BuildValue("(ONNNNN)", self.ids, bytes_of(&self.piles[GROUPS]), bytes_of(&self.piles[SIZES]),
                             self.graded ? bytes_of(&self.piles[GRADES]) : Py_NewRef(Py_None),
                             bytes_of(&self.piles[FIRSTS]), packed(&self));
    if (!plain || (done && self.repeated)) {
        Py_XDECREF(done);
        done = Py_NewRef(Py_None);
    }
    Py_XDECREF(self.ids);
    free(self.names.copy.data);
    for (int each = 0; each < PILES; each++)
        free(self.piles[each].data);
    return done || PyErr_Occurred() ? done : PyErr_NoMemory();
}

/* ---------------------------------------------------------------- ranks */
/* A result that has a score. Its name is a str object where `size` is OBJECT, else that many bytes. */
typedef struct {
    double score;
    const void *name;
    size_t size;
    int64_t position;
} result;
#define OBJECT SIZE_MAX

/* One that is a key of its query; `ahead`, `above` and `equal` count the results of the query, see `count_result`. */
typedef struct {
    result own;
    int64_t query, key, ahead, above, equal;
    int by_id;
} hit;

/* Equal scores: by the id, the greatest first, or as given; one id in the order in which it came. */
static int among_equals(const result *one, const result *other, int by_id) {
    int order = 0;
    if (by_id && one->size == OBJECT)
        order = PyUnicode_Compare((PyObject *)other->name, (PyObject *)one->name);
    else if (by_id)
        order = memcmp(other->name, one->name, one->size < other->size ? one->size : other->size);
    if (!order && by_id && one->size != other->size) return one->size > other->size ? -1 : 1;
    return order ? order : one->position < other->position ? -1 : one->position > other->position;
}

static int in_order(const void *one, const void *other) {
    const hit *left = one, *right = other;
    if (left->query != right->query) return left->query < right->query ? -1 : 1;
    if (left->own.score != right->own.score) return left->own.score > right->own.score ? -1 : 1;
    return among_equals(&left->own, &right->own, left->by_id);
}

/* The first hit, of those in order, that comes after a result; its equals do where `equals` is 1, do not where it is −1,
   and where it is 0 the rule for equal scores says which do. */
static inline size_t first_after(const hit *hits, size_t size, const result *given, int equals) {
    size_t low = 0;
    while (low < size) {
        size_t middle = (low + size) / 2;
        double score = hits[middle].own.score;
        int after = score != given->score ? score < given->score
                    : equals              ? equals > 0
                                          : among_equals(given, &hits[middle].own, hits->by_id) < 0;
        if (after)
            size = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Counts a result against the hits of its query: at the first that it stands ahead of, the first that it is above of,
   and the first that it equals. */
static inline void count_result(hit *hits, size_t size, const result *given) {
    if (!size || given->score < hits[size - 1].own.score) return;
    size_t level = first_after(hits, size, given, 1), next = level;
    if (hits[level].own.score == given->score) {
        hits[level].equal++;
        level = first_after(hits, size, given, 0);
        next = first_after(hits, size, given, -1);
    }
    if (level < size)
        hits[level].ahead++;
    if (next < size)
        hits[next].above++;
}

/* A query while its results go by. Where scores fall strictly, a rank is a place. */
typedef struct {
    pile out, results, hits;
    int by_id, rises;
    double last;
    int64_t count;
} ranking;

static void free_ranking(ranking *self) {
    free(self->out.data);
    free(self->results.data);
    free(self->hits.data);
}

static void begin(ranking *self) {
    self->results.size = self->hits.size = 0;
    self->rises = 0;
    self->count = 0;
}

/* Takes the next result of a query; `key` is −1 where it is no hit. */
static inline int take(ranking *self, result given, int64_t query, int64_t key) {
    self->rises |= self->count++ && given.score >= self->last;
    self->last = given.score;
    result *to = more(&self->results, sizeof(result));
    hit *found = to && key >= 0 ? more(&self->hits, sizeof(hit)) : NULL;
    if (!to || (key >= 0 && !found)) return -1;
    *to = given;
    if (found)
        *found = (hit){given, query, key, 0, 0, 0, self->by_id};
    return 0;
}

/* Keeps the hits of a query with their ranks, and the first and last rank of their equals; makes ready for the next. */
static int settle(ranking *self) {
    hit *hits = (hit *)self->hits.data;
    size_t size = self->hits.size / sizeof(hit), count = self->results.size / sizeof(result);
    int64_t ahead = 0, above = 0, equal = 1;
    if (size && self->rises) {
        qsort(hits, size, sizeof(hit), in_order);
        for (size_t at = 0; at < count; at++)
            count_result(hits, size, (result *)self->results.data + at);
    }
    for (size_t at = 0; at < size; at++) {
        ahead = self->rises ? ahead + hits[at].ahead : hits[at].own.position;
        above = self->rises ? above + hits[at].above : ahead;
        equal = self->rises && hits[at].equal ? hits[at].equal : equal;
        if (keep_row(&self->out, hits[at].query, hits[at].key, ahead + 1, above + 1, above + equal))
            return -1;
    }
    begin(self);
    return 0;
}

/* ---------------------------------------------------------------- rankings in memory */
typedef struct {
    index_view index;
    const query_row *query;
    int64_t number;
    int distinct;
    reader names;
    hashes seen;
    ranking own;
} probe;

/* Compares one result with the keys of its query: 1; 0 where it is not plain; −1 with an exception, or without memory. */
INLINE int compare(probe *self, PyObject *name, int64_t place, const double *score, int distinct) {
    text id;
    uint64_t hash;
    int done = read_id(&self->names, name, self->index.top->seed, &id, &hash);
    if (done <= 0) return done;
    if (distinct && (done = is_seen(&self->seen, hash))) return done < 0 ? -1 : 0;
    const text_row *row = key_of(&self->index, self->query, hash, id);
    if (score)
        done = take(&self->own, (result){*score, name, OBJECT, place}, self->number, row ? (int64_t)row->number : -1);
    else
        done = row ? keep_row(&self->own.out, self->number, row->number, place + 1, place + 1, place + 1) : 0;
    return done ? -1 : 1;
}

/* Results are prefetched this many ahead of the one that is compared; what pairs hold, half as many. */
#define AHEAD 32

static inline void fetch(const void *object) {
    __builtin_prefetch(object);
    __builtin_prefetch((const char *)object + 48);
}

/* Ids in a list; pairs in a list; ids in a list beside a list of scores; a dict of scores. */
enum { IDS, PAIRS, BESIDE, DICT };

/* Takes the results of a query: 1; 0 where one is not plain; −1 with an exception, or without memory. It is compiled
   once for each kind. */
INLINE int take_results(probe *self, PyObject *ranking, PyObject *scores, size_t size, int kind) {
    PyObject *names[AHEAD], *numbers[AHEAD];
    Py_ssize_t state = 0;
    double score;
    for (size_t place = 0, ready = 0, open = 0; place < size; place++) {
        for (; ready < size && ready < place + AHEAD; ready++) {
            PyObject **name = names + ready % AHEAD, **number = numbers + ready % AHEAD;
            if (kind == DICT && !PyDict_Next(ranking, &state, name, number)) return 0;
            fetch(kind == DICT ? *name : (*name = item(ranking, (Py_ssize_t)ready)));
            if (kind >= BESIDE)
                __builtin_prefetch(kind == DICT ? *number : (*number = PyList_GetItem(scores, (Py_ssize_t)ready)));
        }
        for (; kind == PAIRS && open < size && open < place + AHEAD / 2; open++) {
            PyObject *pair = names[open % AHEAD];
            if (size_of(pair) != 2) return 0;
            fetch(names[open % AHEAD] = item(pair, 0));
            __builtin_prefetch(numbers[open % AHEAD] = item(pair, 1));
        }
        PyObject *number = numbers[place % AHEAD];
        if (kind != IDS && (kind != PAIRS || number != Py_None) && !number_of(number, &score)) return 0;
        /* Pairs are ranked in the order given, whatever their scores. */
        int done = compare(self, names[place % AHEAD], (int64_t)place, kind >= BESIDE ? &score : NULL,
                           kind != DICT && self->distinct);
        if (done <= 0) return done;
    }
    return 1;
}

/* Takes the ranking of a query: how many results it has; −2 where it is not plain; −3 where `compare` returns −1. */
static int64_t take_ranking(probe *self, PyObject *ranking, PyObject *scores) {
    size_t before = self->own.out.size;
    /* Until it returns no other thread runs, and no code in Python: what is borrowed stays. */
    int kind = scores ? BESIDE : PyDict_CheckExact(ranking) ? DICT : IDS, taken;
    int64_t size = kind == DICT ? PyDict_Size(ranking) : size_of(ranking);
    if (size < 0 || (scores && (!PyList_CheckExact(scores) || PyList_Size(scores) != size))) return -2;
    if (kind == IDS && size && !PyUnicode_CheckExact(item(ranking, 0)))
        kind = PAIRS;
    forget(&self->seen);
    taken = kind == IDS      ? take_results(self, ranking, NULL, (size_t)size, IDS)
            : kind == PAIRS  ? take_results(self, ranking, NULL, (size_t)size, PAIRS)
            : kind == BESIDE ? take_results(self, ranking, scores, (size_t)size, BESIDE)
                             : take_results(self, ranking, NULL, (size_t)size, DICT);
    if (taken > 0) return settle(&self->own) ? -3 : size;
    self->own.out.size = before;
    begin(&self->own);
    return taken ? -3 : -2;
}

/* Whether a result is a str, alone or beside its score. */
static int is_name(PyObject *cell) {
    return PyUnicode_CheckExact(cell) || (size_of(cell) == 2 && PyUnicode_CheckExact(item(cell, 0)));
}

static PyObject *native_plain(PyObject *module, PyObject *args) {
    PyObject *rankings, *qid, *ranking;
    Py_ssize_t state = 0, size;
    reader names = {0};
    text id;
    uint64_t hash;
    int ends, plain = PyArg_ParseTuple(args, "Op:plain", &rankings, &ends) ? PyDict_CheckExact(rankings) : -1;
    while (plain > 0 && PyDict_Next(rankings, &state, &qid, &ranking))
        if (!ends)
            plain = read_id(&names, qid, 0, &id, &hash);
        else if (!PyDict_CheckExact(ranking) && (size = size_of(ranking)))
            plain = size > 0 && is_name(item(ranking, 0)) && is_name(item(ranking, size - 1));
    free(names.copy.data);
    if (plain < 0) return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    return PyBool_FromLong(plain);
}

static PyObject *native_probe(PyObject *module, PyObject *args) {
    PyObject *rankings, *scores, *qids, *done = NULL;
    Py_buffer given;
    probe self = {0};
    pile sizes = {0};
    if (!PyArg_ParseTuple(args, "OOO!y*pp:probe", &rankings, &scores, &PyList_Type, &qids, &given, &self.own.by_id,
                          &self.distinct))
        return NULL;
    if (view_index(&given, &self.index))
        goto end;
    const head *top = self.index.top;
    if ((uint64_t)PyList_Size(qids) != top->queries || !PyDict_CheckExact(rankings) ||
        (scores != Py_None && !PyDict_CheckExact(scores))) {
        PyErr_SetString(PyExc_ValueError, "expected dicts, and an index of these queries");
        goto end;
    }
    for (int64_t *size; self.number < (int64_t)top->queries; self.number++) {
        uint32_t place = self.index.places[self.number];
        PyObject *qid = PyList_GetItem(qids, (Py_ssize_t)self.number);
        if (!qid || !(size = more(&sizes, sizeof *size)))
            goto end;
        self.query = self.index.table + (place < top->slots ? place : 0);
        Py_INCREF(qid);
        PyObject *ranking = PyDict_GetItemWithError(rankings, qid), *own = NULL;
        Py_XINCREF(ranking);
        if (ranking && scores != Py_None)
            own = PyDict_GetItemWithError(scores, qid);
        *size = PyErr_Occurred() ? -3 : ranking ? take_ranking(&self, ranking, own) : -1;
        Py_XDECREF(ranking);
        Py_DECREF(qid);
        if (*size == -3)
            goto end;
    }
    done = Py_BuildValue("(NN)", bytes_of(&sizes), bytes_of(&self.own.out));
end:
    PyBuffer_Release(&given);
    free(self.names.copy.data);
    free(self.seen.slots);
    free_ranking(&self.own);
    free(sizes.data);
    return done || PyErr_Occurred() ? done : PyErr_NoMemory();
}

/* ---------------------------------------------------------------- TREC runs */
enum { WHOLE, FIRST, SECOND, CLOSELY };
/* Of each query, in the first pass how many lines it has; in the second where its hits begin, and their least score. */
typedef struct { int64_t count; double least; } tally;

/* What is noticed of the lines of a query: a hash that comes twice; a rank that is better than another, of a result with
   a lower score; or that neither ranks nor scores are in order, so that somebody must compare them all. */
enum { REPEATS = 1, CONTRADICTED = 2, UNORDERED = 4 };

/* The lines of a query as far as they are in order. Of scores that never rise: the highest rank so far, and the highest
   of those with a score above the last; of ranks that never fall: the lowest score, and the lowest of lower ranks. */
typedef struct {
    int scores_rise, ranks_fall, contradicted;
    double rank, score, highest, highest_above, lowest, lowest_before;
} order;

typedef struct {
    const byte *data;
    index_view index;
    int mode, closely, repeats, failed;
    order order;
    hashes seen;
    int64_t base, lines;
    text qid;
    const query_row *query;
    tally *tallies;
    ranking own;
    pile hits, segments;
    const byte *recent[1024];
    PyThreadState *thread;
} scanner;

/* m / 10^k, rounded half to even, for k from 1 to 27: m / 5^k is a quotient of two numbers whose first bit is set. */
static int quotient(uint64_t mantissa, int power, double *out) {
#if defined(__SIZEOF_INT128__)
    uint64_t five = 1;
    for (int left = power; left; left--)
        five *= 5;
    int lift = __builtin_clzll(mantissa), raise = __builtin_clzll(five);
    unsigned __int128 top = (unsigned __int128)(mantissa << lift) << 63;
    uint64_t whole = (uint64_t)(top / (five << raise)), rest = (uint64_t)(top % (five << raise));
    int drop = 11 - __builtin_clzll(whole);
    uint64_t half = (uint64_t)1 << (drop - 1), low = whole & (2 * half - 1);
    whole >>= drop;
    whole += low > half || (low == half && (rest || (whole & 1)));
    *out = ldexp((double)whole, drop - 63 + raise - lift - power);
    return 1;
#else
    return 0;
#endif
}

/* The double nearest to a decimal number, as Python reads it: 1; 0 where it is none; −1 where it is not finite. */
static int decimal(scanner *self, text given, double *out) {
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const byte *at = given.data, *end = at + given.size;
    int minus = *at == '-', point = 0, digits = 0, significant = 0, exponent = 0;
    uint64_t mantissa = 0;
    for (at += minus || *at == '+'; at < end; at++) {
        unsigned digit = (unsigned)*at - '0';
        if (digit < 10) {
            mantissa = mantissa * 10 + digit;
            significant += mantissa != 0;
            exponent -= point;
            digits = 1;
        } else if (*at == '.' && !point) {
            point = 1;
        } else {
            break;
        }
    }
    if (digits && end - at > 1 && (*at | 0x20) == 'e') {
        int down = at[1] == '-', power = 0;
        at += 1 + (down || at[1] == '+');
        for (digits = 0; at < end && (unsigned)*at - '0' < 10; at++, digits = 1)
            power = power < 100000 ? power * 10 + (*at - '0') : power;
        exponent += down ? -power : power;
    }
    if (!digits || at != end) return 0;
    int exact = FLT_EVAL_METHOD == 0 && significant <= 19;
    if (!mantissa && significant <= 19)
        *out = 0;
    else if (exact && mantissa <= (uint64_t)1 << 53 && exponent >= -22 && exponent <= 22)
        *out = exponent < 0 ? (double)mantissa / tens[-exponent] : (double)mantissa * tens[exponent];
    else if (!exact || exponent >= 0 || exponent < -27 || !quotient(mantissa, -exponent, out)) {
        char *copy = calloc(given.size + 1, 1), *stop = NULL;
        self->failed |= !copy;
        if (!copy) return -1;
        memcpy(copy, given.data, given.size);
        PyEval_RestoreThread(self->thread);
        *out = PyOS_string_to_double(copy, &stop, NULL);
        PyErr_Clear();
        self->thread = PyEval_SaveThread();
        free(copy);
        return stop && isfinite(*out) ? 1 : -1;
    }
    *out = minus ? -*out : *out;
    return 1;
}

/* Whether a rank is a whole number, maybe with a point and noughts. */
static inline int is_rank(text given) {
    const byte *at = given.data, *end = at + given.size;
    at += given.size > 1 && (*at == '-' || *at == '+');
    int digits = (unsigned)*at - '0' < 10;
    while (at < end && (unsigned)*at - '0' < 10)
        at++;
    for (at += at < end && *at == '.'; at < end && *at == '0';)
        at++;
    return digits && at == end;
}

/* Takes the rank and the score of the next line of a query. */
static inline void look_at(order *self, double rank, double score) {
    if (score < self->score)
        self->highest_above = self->highest;
    if (rank > self->rank)
        self->lowest_before = self->lowest;
    self->scores_rise |= score > self->score;
    self->ranks_fall |= rank < self->rank;
    self->contradicted |= (!self->scores_rise && rank < self->highest_above) ||
                          (!self->ranks_fall && score > self->lowest_before);
    self->highest = rank > self->highest ? rank : self->highest;
    self->lowest = score < self->lowest ? score : self->lowest;
    self->rank = rank;
    self->score = score;
}

/* Lines of one query have ended, and those of another begin. */
static int begin_segment(scanner *self, text qid) {
    int64_t number = self->query ? self->query->own.number - (int64_t)1 : -1, at = self->qid.data - self->data;
    int noticed = (self->repeats ? REPEATS : 0) | (self->order.contradicted ? CONTRADICTED
                                                   : self->order.scores_rise && self->order.ranks_fall ? UNORDERED : 0);
    if (self->mode == WHOLE && self->qid.size &&
        (keep_row(&self->segments, number, self->lines, at, (int64_t)self->qid.size, noticed) || settle(&self->own)))
        return -1;
    self->qid = qid;
    self->lines = self->repeats = 0;
    self->order = (order){0, 0, 0, -HUGE_VAL, HUGE_VAL, -HUGE_VAL, -HUGE_VAL, HUGE_VAL, HUGE_VAL};
    forget(&self->seen);
    self->query = qid.size ? query_of(&self->index, qid) : NULL;
    if (self->mode != FIRST || self->query || !qid.size) return 0;
    /* A query without ground truth whose lines are scattered is told once, as long as it is remembered. */
    uint64_t odd;
    const byte **recent = self->recent + (digest(qid, 0, &odd) >> 54), *before = *recent;
    *recent = qid.data;
    if (before && before[qid.size] <= ' ' && !memcmp(before, qid.data, qid.size)) return 0;
    return keep_row(&self->segments, -1, 0, qid.data - self->data, (int64_t)qid.size, 0);
}

/* One line: 0; 1 where it is not surely a result; −1 where there is no memory. */
static inline int take_line(scanner *self, const text *cells, int count, size_t start, int strange) {
    double score, other, rank;
    text qid = cells[0], id = cells[2];
    for (int cell = 0; strange && cell < count; cell++)
        if (!is_clean(cells[cell])) return 1;
    if (count < 6 || count > 10 || !is_rank(cells[3]) || decimal(self, cells[4], &score) < 1 || id.size > LONGEST_ID ||
        qid.size > LONGEST_ID || (count > 6 && decimal(self, cells[5], &other)) ||
        (self->closely && (!decimal(self, cells[3], &rank) || self->failed)))
        return self->failed ? -1 : 1;
    if ((qid.size != self->qid.size || memcmp(qid.data, self->qid.data, qid.size)) && begin_segment(self, qid))
        return -1;
    self->lines++;
    if (self->closely)
        look_at(&self->order, rank, score);
    if (!self->query) return 0;
    int64_t query = self->query->own.number - (int64_t)1, bits;
    tally *own = self->tallies + query;
    result row = {score, id.data, id.size, self->base + (int64_t)start};
    if (self->mode == SECOND) {
        if (score >= own->least)
            count_result((hit *)self->own.hits.data + own->count, (size_t)(own[1].count - own->count), &row);
        return 0;
    }
    uint64_t odd, hash = digest(id, self->index.top->seed, &odd);
    const text_row *key = key_of(&self->index, self->query, hash, id);
    if (self->mode == WHOLE) {
        int seen = self->closely ? is_seen(&self->seen, hash) : 0;
        if (seen < 0) return -1;
        self->repeats |= seen;
        row.position = self->own.count;
        return take(&self->own, row, query, key ? (int64_t)key->number : -1);
    }
    own->count++;
    memcpy(&bits, &score, 8);
    return key ? keep_row(&self->hits, query, key->number, row.position, bits, key - self->index.keys) : 0;
}

/* Cuts bytes into lines and lines into cells; returns where the first line begins that is not surely a result, or −1;
   −2 where there is no memory. */
static int64_t scan_lines(scanner *self, size_t size) {
    text cells[12] = {{0}};
    size_t line = 0, start = 0;
    int count = 0, strange = 0, bad = 0;
    for (size_t at = 0; at <= size; at += 8) {
        byte last[8];
        const byte *from = self->data + at;
        if (size - at < 8) {
            memset(last, '\n', 8);
            memcpy(last, from, size - at);
            from = last;
        }
        uint64_t word = load8(from), other = (word | ((word & ~TOPS) + ONES)) & TOPS;
        uint64_t blank = ~((word & ~TOPS) + 0x5f * ONES) & ~word & TOPS;
        for (; blank; blank &= blank - 1) {
            size_t place = at + lowest_byte(blank);
            byte sign = from[place - at];
            if (place > start) {
                cells[count] = (text){self->data + start, place - start};
                count += count < 11;
            }
            start = place + 1;
            if (sign == '\n') {
                strange |= other != 0;
                int done = count || bad ? take_line(self, cells, bad ? 0 : count, line, strange) : 0;
                if (done) return done < 0 ? -2 : (int64_t)line;
                line = start;
                count = strange = 0;
            } else if (sign != ' ' && sign != '\t') {
                bad |= sign != '\r' || (place + 1 < size && self->data[place + 1] != '\n');
            }
        }
        strange |= other != 0;
    }
    return begin_segment(self, (text){0}) ? -2 : -1;
}

/* Takes the hits that a first pass found, puts them in order, and says where those of each query begin. */
static int take_hits(scanner *self, const Py_buffer *given) {
    const int64_t *rows = given->buf;
    int64_t count = given->len / 40, queries = (int64_t)self->index.top->queries;
    hit *hits = more(&self->own.hits, (size_t)(count + 1) * sizeof(hit));
    if (!hits || (uintptr_t)rows % 8) return -1;
    for (int64_t at = 0; at < count; at++, rows += 5) {
        const text_row *key = (uint64_t)rows[4] < self->index.top->keys ? self->index.keys + rows[4] : NULL;
        if ((uint64_t)rows[0] >= (uint64_t)queries || !key || !is_inside(&self->index, key))
            return -1;
        hits[at] = (hit){{0, self->index.letters + key->at, key->size, rows[2]}, rows[0], at, 0, 0, 0, self->own.by_id};
        memcpy(&hits[at].own.score, rows + 3, 8);
        self->tallies[rows[0] + 1].count++;
    }
    qsort(hits, (size_t)count, sizeof(hit), in_order);
    for (int64_t query = 0; query < queries; query++) {
        int64_t last = self->tallies[query + 1].count += self->tallies[query].count;
        self->tallies[query].least = last > self->tallies[query].count ? hits[last - 1].own.score : HUGE_VAL;
    }
    return 0;
}

/* Keeps what was counted: of queries in the first pass, of hits in the second. */
static int keep_counts(scanner *self) {
    int64_t queries = (int64_t)self->index.top->queries;
    const hit *hits = (hit *)self->own.hits.data;
    for (int64_t query = 0; self->mode == FIRST && query < queries; query++)
        if (self->tallies[query].count && keep_row(&self->segments, query, self->tallies[query].count, 0, 0, 0))
            return -1;
    for (int64_t at = 0; self->mode == SECOND && at < self->tallies[queries].count; at++)
        if (keep_row(&self->hits, hits[at].key, hits[at].ahead, hits[at].above, hits[at].equal, 0))
            return -1;
    return 0;
}

static PyObject *native_scan(PyObject *module, PyObject *args) {
    PyObject *done = NULL;
    Py_buffer data, given, before;
    long long base;
    scanner self = {0};
    if (!PyArg_ParseTuple(args, "y*y*ipLy*:scan", &data, &given, &self.mode, &self.own.by_id, &base, &before))
        return NULL;
    if (view_index(&given, &self.index) || !(self.tallies = calloc(self.index.top->queries + 1, sizeof(tally))))
        goto end;
    self.data = data.buf;
    self.base = base;
    self.closely = self.mode == CLOSELY;
    if (self.closely)
        self.mode = WHOLE;
    if (self.mode == SECOND && take_hits(&self, &before)) {
        PyErr_SetString(PyExc_ValueError, "expected hits of this index");
        goto end;
    }
    self.thread = PyEval_SaveThread();
    int64_t doubt = scan_lines(&self, (size_t)data.len);
    if (doubt > -2 && keep_counts(&self))
        doubt = -2;
    PyEval_RestoreThread(self.thread);
    if (doubt > -2)
        done = Py_BuildValue("(NNL)", bytes_of(self.mode == WHOLE ? &self.own.out : &self.hits),
                             bytes_of(&self.segments), (long long)doubt);
end:
    PyBuffer_Release(&data);
    PyBuffer_Release(&given);
    PyBuffer_Release(&before);
    free_ranking(&self.own);
    free(self.segments.data);
    free(self.hits.data);
    free(self.seen.slots);
    free(self.tallies);
    return done || PyErr_Occurred() ? done : PyErr_NoMemory();
}

static PyMethodDef methods[] = {
    {"index", native_index, METH_VARARGS, "index(qids, rows, seed) -> (ids, groups, sizes, grades, firsts, index) or None"},
    {"plain", native_plain, METH_VARARGS, "plain(rankings, ends) -> bool"},
    {"probe", native_probe, METH_VARARGS, "probe(rankings, scores, qids, index, by_id, distinct) -> (lengths, hits)"},
    {"scan", native_scan, METH_VARARGS, "scan(data, index, mode, by_id, base, hits) -> (hits, segments, doubt)"},
    {NULL, NULL, 0, NULL},
};

static int fill(PyObject *module) {
    return PyModule_AddStringConstant(module, "source", SOURCE_DIGEST);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill}, {0, NULL}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "groupgt._native", NULL, 0, methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }
