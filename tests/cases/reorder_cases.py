"""reorder_cases.py: random streams, and what a reorder stage reports of each, by a model that is slow and obvious.

    python3 reorder_cases.py SEED N CASES ANSWERS

writes N cases, a line each: rule bits slots window wrap timeout_us, then packets, GAP:NUMBER, with the silence in us in front of
each; by batch and slot a number is batch << 16 | slot. ANSWERS has what tests/cases/reorder_cases.c prints of each.
Numbers here do not wrap: the stage sees them cut to `bits`, or modulo `wrap`.

    python3 reorder_cases.py CASES ANSWERS

reads cases whose numbers do not wrap, and writes their answers."""
import random
import sys

SEQUENCE, SLOTS, SOURCES = range(3)  # rules: what places a packet
GAP = 200_000                        # us: longer than any time-out here
BURST = 32                           # packets that the stage gets at once, where there is no gap
BOARD = 4                            # slots of a source


class Batch:
    def __init__(self, ordinal, otherwise=None):
        self.ordinal, self.slots, self.otherwise = ordinal, set(), otherwise


class Trial:
    def __init__(self, ordinal, needed):
        self.low = self.top = ordinal
        self.needed, self.score, self.alone, self.open = needed, 0, True, {}


class Model:
    """The stage. Batches have ordinals, and batch `ordinal` begins with the number first(ordinal), neither of which wraps."""

    def __init__(self, rule, bits, slots, window, wrap, timeout):
        self.rule, self.slots, self.window, self.timeout = rule, slots, window, timeout
        self.unit = slots if rule == SEQUENCE else 1                # numbers of a batch
        self.cycle = 1 << bits if rule == SEQUENCE else wrap        # numbers there are
        self.back = (self.cycle // self.unit) // 2 - 1              # batches that numbers reach behind top
        self.far = 16 * window
        self.synced, self.epoch, self.strays, self.stray_at = False, 0, 0, 0
        self.run = None                                             # the batch of the packet before, of the same burst
        self.trial, self.closed = None, []                          # closed: (epoch, ordinal, slots that came, or None: never open)
        self.count = dict.fromkeys("late duplicate outlier resyncs".split(), 0)

    # ---- where a number belongs

    def join(self, number):
        """The window begins with the batch of this number; ordinals begin again with what the packets say."""
        if self.synced:
            self.close_to(max(self.open, default=self.low - 1) + 1)
            self.count["resyncs"] += 1
            self.epoch += 1
        self.synced = True
        self.low = self.top = number % self.cycle // self.unit
        self.base = number - number % self.cycle % self.unit - self.low * self.unit
        self.open, self.full, self.strays = {}, set(), 0

    def place_of(self, number, slot):
        """Of the batches that have this number, the nearest to top, which is the later one of two; and the slot."""
        least = self.base + (self.top - self.back) * self.unit
        ordinal, cell = divmod(least + (number - least) % self.cycle - self.base, self.unit)
        return ordinal, cell if self.rule == SEQUENCE else slot

    # ---- the window

    def close_to(self, ordinal):
        while self.low < ordinal:
            b = self.open.pop(self.low, None)
            self.closed.append((self.epoch, self.low, b and frozenset(b.slots)))
            self.full.discard(self.low - 64)
            if b and len(b.slots) == self.slots:
                self.full.add(self.low)
            self.low += 1

    def close_full(self):
        while self.low in self.open and len(self.open[self.low].slots) == self.slots:
            self.close_to(self.low + 1)

    def silence(self):
        if self.timeout and self.synced:
            self.close_to(max(self.open, default=self.low - 1) + 1)

    def expects(self, o):
        return o >= self.low and (o < self.low + self.window or o <= self.top + 1)

    def why_not(self, o):
        if o >= self.low or self.low - o > self.far:
            return "outlier"
        return "duplicate" if o in self.full and self.low - o <= 64 else "late"

    def place(self, batch, slot):
        self.run = batch
        if slot in batch.slots:
            self.count["duplicate"] += 1
            return False
        batch.slots.add(slot)
        return True

    def packet(self, number, slot, quiet):
        """The next one of a burst. Those that follow each other in one batch are checked together, in the stage: a repeated
        packet is a duplicate there, also where the batch is full."""
        if not self.synced:
            self.join(number)
        o, cell = self.place_of(number, slot)
        if self.run and self.run.ordinal == o and cell in self.run.slots:
            self.count["duplicate"] += 1
            return
        self.run = None
        while True:
            o, cell = self.place_of(number, slot)
            if self.expects(o):
                break
            why, t = self.why_not(o), self.trial
            if why == "outlier" or quiet or (t and max(t.top, o) - min(t.low, o) < self.window):
                if self.attempt(o, cell, quiet, why):
                    return
            elif self.many_agree(o):
                self.reject()
                self.join(number)
            else:
                self.count[why] += 1
                return
        self.strays = 0
        if o >= self.low + self.window:
            self.close_to(o - self.window + 1)
            self.close_full()
        self.top = max(self.top, o)
        t = self.trial
        if self.place(self.open.setdefault(o, Batch(o)), cell) and t:
            t.score, t.alone = t.score - 1, False
            if t.score <= -8:
                self.reject()
        self.close_full()

    def many_agree(self, o):
        self.strays = self.strays + 1 if self.strays and abs(o - self.stray_at) < self.window else 1
        self.stray_at = o
        return self.strays >= max(256, self.slots * self.window)

    # ---- the second window

    def goes_on(self):
        return 0 < self.trial.low - self.top <= self.far

    def attempt(self, o, cell, quiet, why):
        """Places a packet in the trial. False: the window has moved."""
        t = self.trial
        if not t or max(t.top, o) - min(t.low, o) >= self.window:
            if t and t.alone and 0 < o - t.top <= self.far:
                if self.goes_on() and t.score > 0:
                    self.believe()
                    return False
                t.low = max(t.low, o - self.window + 1)
                for old in [k for k in t.open if k < t.low]:
                    self.count[t.open[old].otherwise] += len(t.open.pop(old).slots)
            else:
                self.reject()
                t = self.trial = Trial(o, min(max(self.slots, 8), 256))
        if quiet:
            t.needed = 3
        t.low, t.top = min(t.low, o), max(t.top, o)
        if self.place(t.open.setdefault(o, Batch(o, why)), cell):
            t.score += 1
        if t.score >= t.needed:
            self.believe()
        return True

    def believe(self):
        t = self.trial
        if self.goes_on():
            self.trial = None
            self.close_to(t.top - self.window + 1)
            shift = 0
        else:
            self.trial = None
            first = self.base + t.low * self.unit
            self.join(first)
            self.base = first - self.low * self.unit  # the batches stay, where numbers wrap within one
            shift = self.low - t.low
        for o, b in t.open.items():
            b.ordinal += shift
            self.open[o + shift] = b
        self.top = t.top + shift
        self.close_full()

    def reject(self):
        if self.trial:
            for b in self.trial.open.values():
                self.count[b.otherwise] += len(b.slots)
        self.trial = None

    # ---- the end

    def end(self):
        self.reject()
        if self.synced:
            self.close_to(max(self.open, default=self.low - 1) + 1)

    def answer(self):
        missing, cut = (self.by_sequence, self.by_slot, self.by_source)[self.rule]()
        had = [slots for _, _, slots in self.closed if slots is not None]
        whole = sum(len(slots) == self.slots for slots in had)
        skipped = len(self.closed) - len(had)
        text = " ".join("%d:%s" % (o, "".join("01"[k in slots] for k in range(self.slots)))
                        for _, o, slots in self.closed if slots is not None)
        return ("batches %d partial %d skipped %d missing %d cut %d late %d duplicate %d outliers %d resyncs %d %s" % (
            whole, len(had) - whole, skipped, missing + skipped * self.slots, cut, self.count["late"],
            self.count["duplicate"], self.count["outlier"], self.count["resyncs"], text)).rstrip()

    def streams(self):
        for e in range(self.epoch + 1):
            yield [(o, slots) for epoch, o, slots in self.closed if epoch == e and slots is not None]

    def by_sequence(self):
        """Between the first and the last that came."""
        missing = cut = 0
        for batches in self.streams():
            cells = [slot in slots for _, slots in batches for slot in range(self.slots)]
            came = [k for k, there in enumerate(cells) if there]
            lacks = came[-1] + 1 - came[0] - len(came) if came else 0
            missing, cut = missing + lacks, cut + len(cells) - len(came) - lacks
        return missing, cut

    def by_slot(self):
        """What lacks in front of a full batch, or `window` in front of the last one; but not of the first batch."""
        missing = cut = 0
        for batches in self.streams():
            full = max((o for o, slots in batches if len(slots) == self.slots), default=-1 << 70)
            last = max((o for o, _ in batches), default=0)
            for k, (o, slots) in enumerate(batches):
                if k > 0 and (o < full or o <= last - self.window):
                    missing += self.slots - len(slots)
                else:
                    cut += self.slots - len(slots)
        return missing, cut

    def by_source(self):
        """Of each source between its first and its last. A slot that no source had so far is of no source: but for the first
        batch, it is missing where a later batch had anything."""
        missing = cut = 0
        known = set()
        for batches in self.streams():
            begun, tail, unlearnt, nobody = {}, {}, set(), 0
            for k, (_, slots) in enumerate(batches):
                if slots:
                    missing, nobody = missing + nobody, 0
                for slot in range(self.slots):
                    source = slot // BOARD
                    if slot in slots:
                        if slot in unlearnt:
                            unlearnt.remove(slot)
                            if source in begun and begun[source] < slot:
                                missing += 1
                            else:
                                cut += 1
                        begun.setdefault(source, slot if k == 0 else 1 << 30)
                        known.add(slot)
                        missing += tail.pop(source, 0)
                    elif slot not in known:
                        if k == 0:
                            unlearnt.add(slot)
                        else:
                            nobody += 1
                    elif source not in begun:
                        cut += 1
                    else:
                        tail[source] = tail.get(source, 0) + 1
            cut += len(unlearnt) + nobody + sum(tail.values())
        return missing, cut


def stream(r, rule, slots, cycle):
    """Packets (gap, batch-wise number, slot) of one or more runs of a sender, with what happens to them."""
    out, at = [], r.randrange(0, cycle if rule == SEQUENCE else cycle * slots)
    for run in range(r.choice((1, 1, 1, 2, 3))):
        n = r.choice((5, 40, 150, 300))
        if run > 0:
            at = r.choice((at, r.randrange(max(0, at - 40 * slots), at + 1), r.randrange(0, 1 << 20) + at))
        run_at = at
        loss, dup, displaced, wild = r.choice((0, 0.02, 0.2)), r.choice((0, 0.05)), r.choice((0, 3, 3 * slots)), r.choice((0, 0, 0.02))
        dead, lost = r.choice((None, None, 0)), set()
        if r.random() < 0.3:
            first = r.randrange(n)
            lost = set(range(first, first + slots * r.choice((1, 3, 12))))
        packets = []
        for k in range(n):
            if r.random() < loss or k in lost or (dead == (at + k) % slots // BOARD and k < n // 3):
                continue
            for _ in range(1 + (r.random() < dup)):
                packets.append((k + r.uniform(0, displaced), run_at + k))
        packets.sort()
        numbers = [number for _, number in packets]
        for k in range(len(numbers)):
            if r.random() < wild:
                numbers[k] = max(0, numbers[k] + r.choice((-1, 1)) * r.choice((9, 60, 300, 1 << 16)) * slots)
        gap = GAP if run > 0 and r.random() < 0.7 else 0
        for number in numbers:
            out.append((gap, number))
            gap = 0
        at += n
    return out


def case(r):
    rule, slots = r.choice((SEQUENCE, SLOTS, SOURCES)), r.choice((1, 2, 7, 8, 12, 16))
    bits, wrap = r.choice((10, 16, 20, 32)), r.choice((24, 1000, 1 << 20))
    cycle = 1 << bits if rule == SEQUENCE else wrap
    most = (cycle // slots if rule == SEQUENCE else wrap) // 2
    window, timeout = min(r.choice((1, 2, 4, 8)), most), r.choice((0, 50_000))
    if rule == SEQUENCE and cycle // slots < 4:
        return case(r)
    m, words, packets = Model(rule, bits, slots, window, wrap, timeout), [], []
    for gap, number in stream(r, rule, slots, cycle):
        batch, slot = number // slots, number % slots
        words.append("%d:%d" % (gap, number % cycle if rule == SEQUENCE else batch % wrap << 16 | slot))
        packets.append((gap, number if rule == SEQUENCE else batch, slot))
    return "%d %d %d %d %d %d %s" % (rule, bits, slots, window, wrap if rule != SEQUENCE else 0, timeout, " ".join(words)), run(m, packets)


def run(m, packets):
    """The answer to packets (gap, number or batch, slot)."""
    burst = -1
    for gap, number, slot in packets:
        burst = 0 if gap else (burst + 1) % BURST
        if burst == 0:
            m.run = None
        if gap:
            m.silence()
        m.packet(number, slot, gap > 0)
    m.end()
    return m.answer()


def answer(line):
    words = line.split()
    rule, *numbers = map(int, words[:6])
    pairs = (map(int, word.split(":")) for word in words[6:])
    return run(Model(rule, *numbers), [(gap, n, 0) if rule == SEQUENCE else (gap, n >> 16, n & 0xffff) for gap, n in pairs])


def main():
    if len(sys.argv) == 3:
        with open(sys.argv[1]) as cases, open(sys.argv[2], "w") as answers:
            for line in cases:
                print(answer(line), file=answers)
        return
    r, n = random.Random(int(sys.argv[1])), int(sys.argv[2])
    with open(sys.argv[3], "w") as cases, open(sys.argv[4], "w") as answers:
        for _ in range(n):
            line, said = case(r)
            print(line, file=cases)
            print(said, file=answers)


main()
