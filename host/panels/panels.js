"use strict";
// panels.draw(container, figures) draws the figures of streams, an array of panels.Figures, into a container. The first call creates the canvases, and
// later ones draw into them. A pointer or the arrow keys move a cursor, whose values are below the canvas.
const panels = (() => {
  // viridis is the color map: ten colors at equal distances, darkest first.
  const viridis = [[68, 1, 84], [72, 40, 120], [62, 73, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137], [53, 183, 121], [110, 206, 88],
    [181, 222, 43], [253, 231, 37]];
  const mapped = v => {
    const x = Math.min(1, Math.max(0, v)) * (viridis.length - 1), i = Math.min(Math.floor(x), viridis.length - 2);
    return viridis[i].map((a, k) => Math.round(a + (x - i) * (viridis[i + 1][k] - a)));
  };
  const css = color => "rgb(" + color.join(",") + ")";

  // number formats v with so many significant digits.
  const number = (v, digits = 4) => {
    if (Math.abs(v) >= 1e15) return v.toExponential(digits - 1);
    const text = Math.abs(v) >= 10 ** (digits - 1) ? v.toFixed(0) : String(Number(v.toPrecision(digits)));
    return text === "-0" ? "0" : text;
  };
  const count = (n, noun) => n.toLocaleString("en-US") + " " + noun + (n === 1 ? "" : "s");
  const share = s => number(100 * s, 2) + " %";

  // axis returns an axis whose values are divided by factor for its label: units of time and frequency have a decimal prefix.
  const axis = (what, unit, from, to) => {
    let factor = 1, prefix = "";
    const most = Math.max(Math.abs(from), Math.abs(to));
    if (["Hz", "s", "samples"].includes(unit)) {
      const all = [[1e-9, "n"], [1e-6, "µ"], [1e-3, "m"], [1, ""], [1e3, "k"], [1e6, "M"], [1e9, "G"], [1e12, "T"]];
      const fit = all.filter(p => (unit !== "samples" || p[0] >= 1) && (unit !== "s" || p[0] <= 1) && p[0] <= most);
      if (fit.length > 0) [factor, prefix] = fit[fit.length - 1];
    }
    return { what, unit: prefix + unit, factor, from, to, label: what + (unit ? " (" + prefix + unit + ")" : "") };
  };
  const worded = (a, v) => number(v / a.factor, 6) + (a.unit ? " " + a.unit : "");

  // ticks returns values at a distance of 1, 2 or 5 times a power of ten, and their labels.
  const ticks = (a, most) => {
    const low = Math.min(a.from, a.to) / a.factor, high = Math.max(a.from, a.to) / a.factor;
    if (!(high > low)) return [];
    const power = 10 ** Math.floor(Math.log10((high - low) / Math.max(1, most)));
    const step = [1, 2, 5, 10, 20].map(m => m * power).find(s => (high - low) / s <= most);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9)), out = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++)
      out.push([k * step * a.factor, digits > 6 || high >= 1e7 ? (k * step).toPrecision(3) : (k * step + 0).toFixed(digits)]);
    return out;
  };
  const padded = (low, high) => {
    if (!(low < high)) [low, high] = [low - 1, high + 1];
    const margin = (high - low) * 0.05;
    return [low - margin, high + margin];
  };

  // frequencies returns the axis of a spectrum, in Hz if the rate is known.
  const frequencies = (f, s) => f.Rate ? axis("Frequency", "Hz", f.Frequency + s.From * f.Rate, f.Frequency + s.To * f.Rate)
    : axis("Frequency", "cycles/sample", s.From, s.To);
  const duration = (f, what, samples) => f.Rate ? axis(what, "s", 0, samples / f.Rate) : axis(what, "samples", 0, samples);
  const named = (what, f) => f.Name ? what + ", " + f.Name : what;
  const level = v => number(v, 3) + " dBFS";
  const cell = (n, x) => Math.min(n - 1, Math.max(0, Math.floor(x * n)));

  // line draws values at equal distances over the width of a plot.
  const line = (g, plot, values, color) => {
    g.strokeStyle = color;
    g.beginPath();
    values.forEach((v, i) => g.lineTo(plot.x + (i + 0.5) / values.length * plot.w, plot.row(v)));
    g.stroke();
  };

  // image draws rows of colors, from bytes or from values of 0 to 1, so that each cell is a rectangle of the plot.
  const image = (g, plot, columns, rows, at) => {
    const w = Math.round(plot.w * plot.scale), h = Math.round(plot.h * plot.scale), out = new ImageData(w, h), colors = [];
    for (let i = 0; i < 256; i++) colors.push(mapped(i / 255));
    for (let y = 0; y < h; y++) {
      const row = rows((y + 0.5) / h);
      for (let x = 0; x < w; x++) {
        const v = at(row, Math.floor(x * columns / w), Math.max(1, Math.ceil(columns / w))), to = 4 * (y * w + x);
        if (v < 0) continue;
        const c = colors[Math.round(v)];
        out.data[to] = c[0]; out.data[to + 1] = c[1]; out.data[to + 2] = c[2]; out.data[to + 3] = 255;
      }
    }
    g.putImageData(out, Math.round(plot.x * plot.scale), Math.round(plot.y * plot.scale));
  };

  // Each kind of panel returns what it shows of a stream and of all: title, below, axes x and y, paint(g, plot, color), read(x, y) of a position
  // from 0 to 1, and the number of columns that the arrow keys move through. It returns null without data.
  const kinds = {
    spectrum(f) {
      const s = f.Spectrum;
      if (!s) return null;
      const sorted = [...s.Average].sort((a, b) => a - b), [low, high] = padded(sorted[Math.floor(sorted.length / 100)], Math.max(...s.Max));
      const x = frequencies(f, s), n = s.Average.length;
      return { title: named("Power spectrum", f), below: count(s.Averages, "transform") + " of " + s.Points + " points, window " + s.Window, x,
        y: axis("Level", "dBFS", low, high), columns: n, legend: [["average", "line"], ["max hold", "hold"]],
        paint(g, plot, color) { line(g, plot, s.Max, color.hold); line(g, plot, s.Average, color.line); },
        read(u) { const i = cell(n, u); return worded(x, x.from + (i + 0.5) / n * (x.to - x.from)) + ": average " + level(s.Average[i]) + ", max hold " + level(s.Max[i]); } };
    },
    waterfall(f) {
      const w = f.Waterfall;
      if (!w) return null;
      const bytes = Uint8Array.from(atob(w.Lines || ""), c => c.charCodeAt(0)), total = w.Ages[w.Ages.length - 1];
      const x = frequencies(f, w), y = axis("Age", w.Unit, total, 0);
      const lineAt = u => Math.max(0, w.Ages.findIndex(a => a >= u * total));
      return { title: named("Waterfall", f), below: "newest on top", x, y, columns: w.Columns, rows: w.Ages.length, bar: axis("Level", "dBFS", w.Low, w.High),
        paint(g, plot) {
          image(g, plot, w.Columns, lineAt, (row, i, n) => {
            let v = 0;
            for (let k = i; k < Math.min(w.Columns, i + n); k++) v = Math.max(v, bytes[row * w.Columns + k]);
            return v > 0 ? (v - 1) / 254 * 255 : -1;
          });
        },
        read(u, v) { const i = cell(w.Columns, u), row = lineAt(1 - v), of = bytes[row * w.Columns + i];
          return worded(x, x.from + (i + 0.5) / w.Columns * (x.to - x.from)) + ", age " + worded(y, w.Ages[row]) + ": "
            + (of > 0 ? level(w.Low + (of - 1) / 254 * (w.High - w.Low)) : "no transform"); } };
    },
    histogram(f) {
      const h = f.Histogram;
      if (!h) return null;
      const n = h.Counts.length, most = Math.max(...h.Counts), x = axis("Value", f.Unit, h.First, h.First + n * h.Width);
      const clipped = i => f.Clipped > 0 && (i === 0 && h.Ends[0] || i === n - 1 && h.Ends[1]);
      return { title: named("Histogram of values", f), below: "rms " + number(f.RMS) + (f.Unit ? " " + f.Unit : "") + ", mean " + number(f.Mean) + ", from " + number(f.Least)
          + " to " + number(f.Greatest) + ", " + share(f.Clipped) + " clipped", x, y: axis("Number", "", 0, most * 1.05), columns: n,
        paint(g, plot, color) {
          for (let i = 0; i < n; i++) {
            g.fillStyle = clipped(i) ? color.bad : color.line;
            const top = Math.min(plot.row(h.Counts[i]), plot.y + plot.h - 1);
            if (h.Counts[i] > 0) g.fillRect(plot.x + i / n * plot.w, top, Math.max(1, plot.w / n), plot.y + plot.h - top);
          }
        },
        read(u) { const i = cell(n, u); return worded(x, h.First + i * h.Width) + ": " + count(h.Counts[i], "value") + (clipped(i) ? ", clipped" : ""); } };
    },
    time(f) {
      const t = f.Time;
      if (!t || t.Columns[0].length === 0) return null;
      const n = t.Columns[0].length, [low, high] = padded(f.Least, f.Greatest), x = duration(f, "Time", n * t.Per), parts = f.Complex ? ["real part", "imaginary part"] : ["value"];
      return { title: named("Time series", f), below: "least and greatest of " + count(t.Per, "sample"), x, y: axis("Value", f.Unit, low, high), columns: n,
        legend: f.Complex ? [[parts[0], "line"], [parts[1], "hold"]] : [],
        paint(g, plot, color) {
          t.Columns.forEach((columns, part) => {
            g.fillStyle = part ? color.hold : color.line;
            g.globalAlpha = 0.65;
            let before = null;
            columns.forEach((c, i) => {
              if (c) {
                const least = before ? Math.min(c[0], before[1]) : c[0], greatest = before ? Math.max(c[1], before[0]) : c[1];
                const top = plot.row(greatest);
                g.fillRect(plot.x + i / n * plot.w, top, Math.max(1, plot.w / n), Math.max(1, plot.row(least) - top));
              }
              before = c;
            });
            g.globalAlpha = 1;
          });
        },
        read(u) { const i = cell(n, u);
          return worded(x, i / n * x.to) + ": " + t.Columns.map((c, k) => parts[k] + (c[i] ? " " + number(c[i][0]) + " to " + number(c[i][1]) : " missing")).join(", "); } };
    },
    constellation(f) {
      const points = f.Points;
      if (!points || points.length === 0) return null;
      const limit = Math.max(1e-30, ...points.map(p => Math.max(Math.abs(p[0]), Math.abs(p[1])))) * 1.05;
      const x = axis("Real part", f.Unit, -limit, limit), y = axis("Imaginary part", f.Unit, -limit, limit);
      return { title: named("Constellation", f), below: count(points.length, "sample"), x, y, columns: 200, rows: 200, square: true,
        paint(g, plot, color) {
          g.fillStyle = color.line;
          g.globalAlpha = 0.5;
          for (const p of points) g.fillRect(plot.x + (p[0] + limit) / (2 * limit) * plot.w - 1, plot.row(p[1]) - 1, 2, 2);
          g.globalAlpha = 1;
        },
        read(u, v) { return "real part " + number((2 * u - 1) * limit) + ", imaginary part " + number((2 * v - 1) * limit); } };
    },
    gaps(f, all) {
      const samples = Math.max(...all.map(o => o.Gaps ? o.Gaps.Samples : 0));
      if (samples === 0) return null;
      const most = Math.max(...all.map(o => Math.max(0, ...(o.Gaps.Missing || [])))) || 1;
      const missing = all.reduce((n, o) => n + o.Missing, 0), sum = all.reduce((n, o) => n + o.Missing + o.Samples, 0), x = duration(f, "Time", samples);
      const at = (o, from, to) => {
        const list = o.Gaps.Missing || [], i = Math.floor(from * samples / o.Gaps.Per), k = Math.max(i + 1, Math.floor(to * samples / o.Gaps.Per));
        return i < list.length ? Math.max(...list.slice(i, k)) : -1;
      };
      return { title: "Missing samples", below: share(missing / sum) + " of " + count(sum, "sample"), x, y: axis("Stream", "", all.length, 0), names: all.map(o => o.Name),
        columns: 1024, rows: all.length, bar: axis("Missing", "%", 0, 100 * most),
        paint(g, plot) {
          const w = Math.round(plot.w * plot.scale);
          image(g, plot, w, v => all[cell(all.length, v)], (o, i) => { const v = at(o, i / w, (i + 1) / w); return v < 0 ? -1 : 255 * v / most; });
        },
        read(u, v) { const o = all[cell(all.length, 1 - v)], m = at(o, u, u + 1 / 1024);
          return (o.Name ? o.Name + ", " : "") + worded(x, u * x.to) + ": " + (m < 0 ? "no samples" : share(m) + " missing"); } };
    },
    power(f, all) {
      const streams = all.filter(o => o.Histogram), levels = streams.map(o => o.Power);
      if (all.length < 2 || levels.length === 0) return null;
      const n = levels.length, median = [...levels].sort((a, b) => a - b)[n >> 1], [low, high] = padded(Math.min(...levels) - 1, Math.max(...levels));
      const apart = i => Math.abs(levels[i] - median) > 3;
      return { title: "Power by stream", below: "median " + level(median) + "; more than 3 dB from it: " + levels.filter((_, i) => apart(i)).length, y: axis("Level", "dBFS", low, high),
        x: axis("Stream", "", 0, n), names: streams.map(o => o.Name), columns: n,
        paint(g, plot, color) {
          levels.forEach((v, i) => {
            g.fillStyle = apart(i) ? color.bad : color.line;
            g.fillRect(plot.x + (i + 0.15) / n * plot.w, plot.row(v), 0.7 / n * plot.w, plot.y + plot.h - plot.row(v));
          });
        },
        read(u) { const i = cell(n, u); return streams[i].Name + ": " + level(levels[i]) + ", " + number(levels[i] - median, 3) + " dB from the median"; } };
    },
  };

  // colors reads the colors of the style sheet.
  const colors = element => {
    const style = getComputedStyle(element), out = {};
    for (const name of ["ink", "grid", "line", "hold", "bad"]) out[name] = style.getPropertyValue("--panel-" + name).trim();
    return out;
  };

  // labels draws the axes of a model around its plot.
  const labels = (g, plot, m, color) => {
    g.font = "12px system-ui, sans-serif";
    g.fillStyle = color.ink;
    g.strokeStyle = color.grid;
    g.lineWidth = 1;
    const names = m.names || [], upright = m.rows !== undefined || names.length === 0;
    const xs = upright ? ticks(m.x, plot.w / 55) : names.map((s, i) => [i + 0.5, s]);
    const ys = upright && names.length > 0 ? names.map((s, i) => [i + 0.5, s]) : ticks(m.y, plot.h / 36);
    const every = upright ? 1 : Math.ceil(names.length * 90 / plot.w);
    g.textAlign = "center";
    xs.forEach(([v, text], i) => {
      const x = plot.column(v);
      if (upright) g.strokeRect(x, plot.y, 0, plot.h);
      if (i % every === 0) g.fillText(text, x, plot.y + plot.h + 16);
    });
    g.fillText(m.x.label, plot.x + plot.w / 2, plot.y + plot.h + 34);
    g.textAlign = "right";
    for (const [v, text] of ys) {
      if (names.length === 0 || !upright) g.strokeRect(plot.x, plot.row(v), plot.w, 0);
      g.fillText(text, plot.x - 6, plot.row(v) + 4);
    }
    g.save();
    g.translate(13, plot.y + plot.h / 2);
    g.rotate(-Math.PI / 2);
    g.textAlign = "center";
    g.fillText(m.y.label, 0, 0);
    g.restore();
    if (m.bar) bar(g, plot, m.bar, color);
  };

  // bar draws the scale of colors right of the plot.
  const bar = (g, plot, a, color) => {
    const x = plot.x + plot.w + 14;
    for (let y = 0; y < plot.h; y++) {
      g.fillStyle = css(mapped(1 - y / (plot.h - 1)));
      g.fillRect(x, plot.y + y, 14, 1.5);
    }
    g.fillStyle = color.ink;
    g.textAlign = "left";
    for (const [v, text] of ticks(a, plot.h / 36)) g.fillText(text, x + 18, plot.y + plot.h * (1 - (v - a.from) / (a.to - a.from)) + 4);
    g.save();
    g.translate(x + 62, plot.y + plot.h / 2);
    g.rotate(-Math.PI / 2);
    g.textAlign = "center";
    g.fillText(a.label, 0, 0);
    g.restore();
  };

  // render draws a panel: its picture, axes, and the cursor with its values.
  const render = p => {
    const m = p.model, canvas = p.canvas, scale = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (!m || width === 0) return;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    const g = canvas.getContext("2d"), color = colors(canvas), right = m.bar ? 90 : 14, left = m.rows && m.names ? 110 : 64;
    const plot = { x: left, y: 8, w: width - left - right, h: height - 52, scale };
    if (m.square) plot.w = plot.h = Math.min(plot.w, plot.h);
    plot.row = v => plot.y + plot.h * (1 - (v - m.y.from) / (m.y.to - m.y.from));
    plot.column = v => plot.x + plot.w * (v - m.x.from) / (m.x.to - m.x.from);
    p.plot = plot;
    g.setTransform(scale, 0, 0, scale, 0, 0);
    g.clearRect(0, 0, width, height);
    labels(g, plot, m, color);
    g.save();
    g.beginPath();
    g.rect(plot.x, plot.y, plot.w, plot.h);
    g.clip();
    m.paint(g, plot, color);
    g.restore();
    g.strokeStyle = color.ink;
    g.strokeRect(plot.x - 0.5, plot.y - 0.5, plot.w + 1, plot.h + 1);
    if (p.cursor) {
      g.setLineDash([3, 3]);
      g.strokeRect(plot.x + p.cursor.x * plot.w, plot.y, 0, plot.h);
      if (m.rows) g.strokeRect(plot.x, plot.y + (1 - p.cursor.y) * plot.h, plot.w, 0);
      g.setLineDash([]);
    }
    p.output.textContent = p.cursor ? m.read(p.cursor.x, p.cursor.y) : "";
  };

  // move reacts to a key. It returns false for a key without a function.
  const move = (p, key, far) => {
    const m = p.model, c = p.cursor || { x: 0.5, y: 0.5 }, dx = (far ? 10 : 1) / m.columns, dy = (far ? 10 : 1) / (m.rows || 100);
    const to = { ArrowLeft: [c.x - dx, c.y], ArrowRight: [c.x + dx, c.y], ArrowUp: [c.x, c.y + dy], ArrowDown: [c.x, c.y - dy], Home: [0, c.y], End: [1, c.y] }[key];
    if (key === "Escape") p.cursor = null;
    else if (!to) return false;
    else p.cursor = { x: Math.min(1 - 0.5 / m.columns, Math.max(0.5 / m.columns, to[0])), y: Math.min(1, Math.max(0, to[1])) };
    render(p);
    return true;
  };

  // create adds an empty panel to the page.
  const create = (grid, kind) => {
    const p = { figure: document.createElement("figure"), caption: document.createElement("figcaption"), canvas: document.createElement("canvas"),
      output: document.createElement("output"), cursor: null };
    p.figure.className = "panel";
    p.figure.dataset.kind = kind;
    p.canvas.tabIndex = 0;
    p.canvas.setAttribute("role", "img");
    p.figure.append(p.caption, p.canvas, p.output);
    grid.append(p.figure);
    const point = e => {
      const box = p.canvas.getBoundingClientRect(), plot = p.plot;
      if (!plot) return;
      const x = (e.clientX - box.left - plot.x) / plot.w, y = 1 - (e.clientY - box.top - plot.y) / plot.h;
      p.cursor = x >= 0 && x < 1 && y >= 0 && y <= 1 ? { x, y } : null;
      render(p);
    };
    p.canvas.addEventListener("pointermove", point);
    p.canvas.addEventListener("pointerdown", point);
    p.canvas.addEventListener("keydown", e => { if (p.model && move(p, e.key, e.shiftKey)) e.preventDefault(); });
    return p;
  };

  // build creates what a container shows.
  const build = container => {
    const state = { choice: document.createElement("select"), all: {}, figures: [], stream: "" };
    const label = document.createElement("label"), grid = document.createElement("div");
    label.append("Stream ", state.choice);
    label.className = "stream";
    grid.className = "panels";
    container.append(label, grid);
    for (const kind of Object.keys(kinds)) state.all[kind] = create(grid, kind);
    state.choice.addEventListener("change", () => { state.stream = state.choice.value; update(state); });
    const again = () => Object.values(state.all).forEach(render);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    window.addEventListener("resize", again);
    state.label = label;
    return state;
  };

  // update draws the figures of the chosen stream.
  const update = state => {
    const names = state.figures.map(f => f.Name);
    if (names.join("\n") !== state.names) {
      state.names = names.join("\n");
      state.choice.replaceChildren(...names.map(n => new Option(n, n, false, n === state.stream)));
    }
    state.label.hidden = names.length < 2;
    const chosen = state.figures.find(f => f.Name === state.stream) || state.figures[0];
    for (const [kind, p] of Object.entries(state.all)) {
      p.model = chosen ? kinds[kind](chosen, state.figures) : null;
      p.figure.hidden = !p.model;
      if (!p.model) continue;
      const small = document.createElement("small");
      small.textContent = p.model.below;
      const keys = (p.model.legend || []).map(([text, name]) => {
        const key = document.createElement("span");
        key.className = "key " + name;
        key.textContent = text;
        return key;
      });
      p.caption.replaceChildren(p.model.title, ...keys, small);
      p.canvas.setAttribute("aria-label", p.model.title + ": " + p.model.below);
      render(p);
    }
  };

  const states = new WeakMap();
  const draw = (container, figures) => {
    if (!states.has(container)) states.set(container, build(container));
    const state = states.get(container);
    state.figures = figures;
    update(state);
  };
  return { draw };
})();
