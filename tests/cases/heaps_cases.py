"""heaps_cases.py: random pieces of heaps, and what a heaps stage reports of each case, by a model that is slow and obvious.

    python3 heaps_cases.py SEED N CASES ANSWERS

writes N cases, a line each: window timeout_us, then pieces, GAP:ID:SIZE:AT:LENGTH, with the silence in us in front of each.
ANSWERS has what tests/cases/heaps_cases.c prints of each."""
import random
import sys

MOST = 100     # bytes of a heap
GAP = 200_000  # us: longer than any time-out here, and than an id is remembered
BURST = 32     # packets that the stage gets at once, where there is no gap
PAST = 128     # heaps whose ids are remembered


class Heap:
    def __init__(self, ident, size, ordinal, when):
        self.ident, self.size, self.ordinal, self.bytes, self.when = ident, size, ordinal, set(), when

    def whole(self):
        return len(self.bytes) == self.size


class Model:
    def __init__(self, window, timeout):
        self.window, self.timeout = window, timeout
        self.open, self.closed, self.opened = [], [], 0  # open: the one that waits longest for a piece is the first
        self.run = None                                  # the heap of the piece before, of the same burst
        self.now = 0                                     # gaps so far: an id is remembered until the next one
        self.count = dict.fromkeys("late duplicate overlap past_end size_changed too_long".split(), 0)

    def close(self, heap):
        self.open.remove(heap)
        self.closed.append(heap)

    def silence(self):
        self.now += 1
        self.run = None
        if self.timeout:
            self.close_all()

    def close_all(self):
        for heap in sorted(self.open, key=lambda heap: heap.ordinal):
            self.close(heap)

    def piece(self, ident, size, at, length):
        if self.run and self.run.ident != ident:
            self.run = None
        if size > MOST:
            self.count["too_long"] += 1
            return
        if at > MOST:
            self.count["past_end"] += 1
            return
        heap = self.run if self.run and self.run.ident == ident else self.find(ident, size)
        if not heap:
            return
        self.run = heap
        why = self.why_not(heap, size, at, length)
        if why:
            self.count[why] += 1
        else:
            heap.bytes.update(range(at, at + length))
            heap.when = self.now
        if heap.whole() and heap in self.open:
            self.close(heap)

    def find(self, ident, size):
        """The heap of a piece, which may begin it. Pieces of one heap that follow each other are checked together."""
        self.run = None
        for heap in self.open:
            if heap.ident == ident:
                if heap.size != size:
                    self.count["size_changed"] += 1
                    return None
                self.open.remove(heap)
                self.open.append(heap)
                return heap
        before = [heap for heap in self.closed[-PAST:] if heap.ident == ident and heap.when == self.now]
        if before:
            self.count["duplicate" if before[-1].whole() else "late"] += 1
            return None
        if len(self.open) == self.window:
            self.close(self.open[0])
        self.open.append(Heap(ident, size, self.opened, self.now))
        self.opened += 1
        return self.open[-1]

    def why_not(self, heap, size, at, length):
        if size != heap.size:
            return "size_changed"
        if at + length > heap.size:
            return "past_end"
        there = sum(k in heap.bytes for k in range(at, at + length))
        return "duplicate" if there == length else "overlap" if there else None

    def answer(self):
        self.close_all()
        missing = cut = 0
        full = max((heap.ordinal for heap in self.closed if heap.whole()), default=-1)
        for heap in self.closed:
            first, end = min(heap.bytes, default=0), max(heap.bytes, default=-1) + 1
            missing += end - first - len(heap.bytes)
            if heap.ordinal > 0:
                missing += first
            else:
                cut += first
            if heap.ordinal < full or heap.ordinal < self.opened - self.window:
                missing += heap.size - end
            else:
                cut += heap.size - end
        whole = sum(heap.whole() for heap in self.closed)
        counts = " ".join("%s %d" % each for each in self.count.items())
        text = "".join(" %d:%s" % (heap.ident, "".join("01"[k in heap.bytes] for k in range(heap.size))) for heap in self.closed)
        return "batches %d partial %d missing %d cut %d %s%s" % (whole, len(self.closed) - whole, missing, cut, counts, text)


def pieces(r, ids):
    """Pieces of heaps with these ids, displaced, some lost, repeated, overlapping or wrong."""
    loss, dup, displaced, wrong = r.choice((0, 0.05, 0.3)), r.choice((0, 0.05)), r.choice((0, 3, 12)), r.choice((0, 0, 0.03))
    out = []
    for ident in ids:
        size, at = r.randrange(1, MOST + 1), 0
        while at < size:
            length = r.randrange(1, min(size - at, 30) + 1)
            if r.random() >= loss:
                piece = (ident, size, at, length)
                if r.random() < wrong:
                    piece = (ident, r.choice((size, size + 1, MOST + 9)), r.choice((at, at + 1, MOST + 5)), length)
                for _ in range(1 + (r.random() < dup)):
                    out.append((len(out) + r.uniform(0, displaced), piece))
            at += length
    return [piece for _, piece in sorted(out)]


def case(r):
    window, timeout = r.choice((1, 2, 4, 16)), r.choice((0, 50_000))
    m, words, burst, start = Model(window, timeout), [], -1, r.randrange(1 << 40)
    for run in range(r.choice((1, 1, 2, 3))):
        n, ids = r.choice((3, 20, 60)), r.choice((1 << 40, 256, 8))
        step = r.choice((1, 1, 3))
        gap = GAP if run > 0 and r.random() < 0.7 else 0
        for ident, size, at, length in pieces(r, [(start + step * k) % ids for k in range(n)]):
            words.append("%d:%d:%d:%d:%d" % (gap, ident, size, at, length))
            burst = 0 if gap else (burst + 1) % BURST
            if burst == 0:
                m.run = None
            if gap:
                m.silence()
            m.piece(ident, size, at, length)
            gap = 0
    return "%d %d %s" % (window, timeout, " ".join(words)), m.answer()


def main():
    r, n = random.Random(int(sys.argv[1])), int(sys.argv[2])
    with open(sys.argv[3], "w") as cases, open(sys.argv[4], "w") as answers:
        for _ in range(n):
            line, answer = case(r)
            print(line, file=cases)
            print(answer, file=answers)


main()
