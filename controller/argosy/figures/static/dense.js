// How are many thousands of attempts or instances drawn? Two canvases, which read the page's `data` by their `data-of`.
// Pure functions are exported, for the tests; the page starts what is at the end.

// Outcomes 1 to 7 are those of attempts that ended (model/ended_attempts), 0 is one that is alive.
const KINDS = ["succeeded", "failed", "lost", "cancelled", "running"];
const KIND_OF = [4, 0, 1, 1, 2, 2, 1, 3];  // outcome -> place in KINDS
const SAID = ["running", "succeeded", "failed", "timed out", "interrupted", "lost", "not started", "cancelled"];
const TYPES = { "<u1": Uint8Array, "<u2": Uint16Array, "<u4": Uint32Array };
const NAMED = 40;  // tasks of one instance
const LANE_PX = 30;  // as high as a lane gets
const NEAR_PX = 5;  // a lane this high is drawn attempt by attempt
const BOTTOM = 26, LEFT = 62, TOP = 8;
const VIRIDIS = [[68, 1, 84], [65, 68, 135], [42, 120, 142], [34, 168, 132], [122, 209, 81], [253, 231, 37]];
const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

/** A column as it is stored: {dtype, data: base64, little-endian}. */
export function decode({ dtype, data }) {
  const text = atob(data), bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return new TYPES[dtype](bytes.buffer);
}

/** share 0..1 -> [red, green, blue]. */
export function viridis(share) {
  const place = Math.min(1, Math.max(0, share)) * (VIRIDIS.length - 1), low = Math.min(Math.floor(place), VIRIDIS.length - 2);
  return VIRIDIS[low].map((from, part) => Math.round(from + (VIRIDIS[low + 1][part] - from) * (place - low)));
}

/** "45 s", "1m 05s", "2h 05m" */
export function duration(seconds) {
  const two = (number) => String(Math.floor(number)).padStart(2, "0");
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${two(seconds % 60)}s`;
  return `${Math.floor(seconds / 3600)}h ${two(seconds % 3600 / 60)}m`;
}

/** Round moments between two, in seconds: at most `most`. */
export function ticks(low, high, most) {
  const wanted = (high - low) / most, step = STEPS_S.find((each) => each >= wanted) ?? Math.ceil(wanted / 86400) * 86400;
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
  return found;
}

/** The same for a picture that begins at a moment (epoch seconds): [seconds, clock of this machine]. */
export function clockTicks(begun, low, high, most) {
  const local = begun - new Date(begun * 1000).getTimezoneOffset() * 60;
  return ticks(local + low, local + high, most).map((at) => [at - local, new Date(at * 1000).toISOString().slice(11, high - low < 300 ? 19 : 16)]);
}

/** At which rows does the axis of rows have a number? At equal distances, from the first one on. */
export function laneTicks(low, high) {
  const found = [], step = high - low > 8 ? Math.ceil((high - low) / 4) : Infinity;
  for (let lane = Math.floor(low); lane < high; lane += step) found.push(lane);
  return found;
}

/** Which row within one lane does each attempt take? Attempts are in order of lane and start. */
export function slots({ lane, start, stop }, lanes) {
  const slot = new Uint8Array(lane.length), depth = new Uint8Array(lanes).fill(1);
  let free = [], last = -1;
  for (let row = 0; row < lane.length; row++) {
    if (lane[row] !== last) { free = []; last = lane[row]; }
    let place = free.findIndex((until) => until <= start[row]);
    if (place < 0) place = Math.min(free.length, 254);
    free[place] = stop[row];
    slot[row] = place;
    depth[last] = Math.max(depth[last], place + 1);
  }
  return { slot, depth };
}

/** How long did attempts of each kind run in each pixel? Seconds; shape (height, width, KINDS). */
export function raster(attempts, view, width, height) {
  const sums = new Float32Array(width * height * KINDS.length);
  const perSecond = width / (view.t1 - view.t0), perLane = height / (view.l1 - view.l0);
  const { lane, start, stop, outcome } = attempts;
  for (let row = 0; row < lane.length; row++) {
    if (lane[row] + 1 <= view.l0 || lane[row] >= view.l1 || stop[row] <= view.t0 || start[row] >= view.t1) continue;
    const top = Math.max(0, Math.floor((lane[row] - view.l0) * perLane));
    const below = Math.min(height, Math.max(top + 1, Math.floor((lane[row] + 1 - view.l0) * perLane)));
    const from = Math.max(0, (start[row] - view.t0) * perSecond), to = Math.min(width, (stop[row] - view.t0) * perSecond);
    const kind = KIND_OF[outcome[row]];
    for (let x = Math.floor(from); x < to; x++) {
      const seconds = (Math.min(to, x + 1) - Math.max(from, x)) / perSecond;
      for (let y = top; y < below; y++) sums[(y * width + x) * KINDS.length + kind] += seconds;
    }
  }
  return sums;
}

/** The attempt at a moment on a lane, or -1. near: seconds by which a short one may be missed. */
export function attemptAt(attempts, lane, slot, at, near) {
  let low = 0, high = attempts.lane.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (attempts.lane[middle] < lane) low = middle + 1; else high = middle;
  }
  let best = -1;
  for (let row = low; row < attempts.lane.length && attempts.lane[row] === lane; row++) {
    if (attempts.start[row] > at + near) break;
    if (attempts.stop[row] >= at - near && (best < 0 || attempts.slot[row] === slot)) best = row;
  }
  return best;
}

/** Where does each instance's square stand? One row for each type, one column for each zone, squares in reading order. */
export function blocks(type, zone, types, zones, width, tallest) {
  const counts = new Map();
  for (let row = 0; row < type.length; row++) {
    const key = type[row] * zones + zone[row];
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const column = Math.max(40, (width - LEFT - 50) / zones), inner = column - 12;
  let side = 18, heights;
  for (; side >= 4; side--) {
    const across = Math.max(1, Math.floor(inner / side));
    heights = Array.from({ length: types }, (_, each) => {
      let most = 1;
      for (let place = 0; place < zones; place++) most = Math.max(most, Math.ceil((counts.get(each * zones + place) ?? 0) / across));
      return Math.max(22, most * side + 10);
    });
    if (heights.reduce((sum, each) => sum + each, 0) <= tallest) break;
  }
  side = Math.max(side, 4);
  const tops = [];
  let top = 24;
  for (const each of heights) { tops.push(top); top += each; }
  const across = Math.max(1, Math.floor(inner / side)), seen = new Map();
  const x = new Float32Array(type.length), y = new Float32Array(type.length);
  for (let row = 0; row < type.length; row++) {
    const key = type[row] * zones + zone[row], place = seen.get(key) ?? 0;
    seen.set(key, place + 1);
    x[row] = LEFT + 50 + zone[row] * column + place % across * side;
    y[row] = tops[type[row]] + 4 + Math.floor(place / across) * side;
  }
  return { x, y, side, tops, heights, column, height: top + 4 };
}

/** What works on an instance, by run, with the places of GPUs: "digits-1: 3, 17 (GPU 0, 2)". */
export function workOn(row, { first, run, index, gpus }, runs) {
  const found = new Map();
  for (let place = first[row]; place < first[row + 1]; place++) {
    const held = gpus ? [...Array(32).keys()].filter((bit) => gpus[place] >>> bit & 1) : [];
    const task = index[place] + (held.length ? ` (GPU ${held.join(", ")})` : "");
    found.set(run[place], [...(found.get(run[place]) ?? []), task]);
  }
  return [...found].map(([each, tasks]) => `${runs[each]}: ${named(tasks)}`).join("; ");
}

const named = (tasks) => tasks.length <= NAMED ? tasks.join(", ") : `${tasks.slice(0, NAMED).join(", ")} and ${tasks.length - NAMED} others`;

const number = (value) => value.toLocaleString("en-US");

/** What both pictures share: size in pixels, colours of the page, the line below that says what is pointed at. */
class Picture {
  constructor(canvas, data) {
    this.canvas = canvas;
    this.data = data;
    this.context = canvas.getContext("2d");
    this.output = canvas.parentElement.querySelector("output");
    this.tools = canvas.parentElement.querySelector(".tools");
    canvas.addEventListener("pointermove", (event) => this.point(event.offsetX, event.offsetY));
    canvas.addEventListener("keydown", (event) => { if (this.key(event)) event.preventDefault(); });
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(canvas);
    this.over = new AbortController();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw(), { signal: this.over.signal });
  }

  /** A newer picture has taken its place: nothing holds its data any longer. */
  end() {
    this.resized.disconnect();
    this.over.abort();
  }

  begin() {
    const sharp = Math.min(2, window.devicePixelRatio || 1), { clientWidth, clientHeight } = this.canvas;
    this.canvas.width = Math.max(1, Math.round(clientWidth * sharp));
    this.canvas.height = Math.max(1, Math.round(clientHeight * sharp));
    this.width = clientWidth;
    this.height = clientHeight;
    this.sharp = sharp;
    const style = getComputedStyle(this.canvas);
    this.colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const context = this.context;
    context.setTransform(sharp, 0, 0, sharp, 0, 0);
    context.font = `${Math.round(0.8 * parseFloat(getComputedStyle(document.documentElement).fontSize))}px ${style.fontFamily}`;
    context.fillStyle = this.colour("surface");
    context.fillRect(0, 0, clientWidth, clientHeight);
    return context;
  }

  rgb(name) {
    const text = this.colour(name), long = text.length > 4 ? text : text.replace(/[0-9a-f]/gi, "$&$&");
    return [1, 3, 5].map((at) => parseInt(long.slice(at, at + 2), 16));
  }

  button(text, label, act) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    if (label) button.setAttribute("aria-label", label);
    button.addEventListener("click", () => act(button));
    this.tools.append(button);
    return button;
  }

  say(text) {
    if (this.output.textContent !== text) this.output.textContent = text;
  }
}

/** Attempts by instance: a lane for each instance, in the order of their launch. */
class Lanes extends Picture {
  constructor(canvas, data) {
    super(canvas, data);
    const column = (group, name) => decode(data[group][name]);
    const seconds = (tenths) => Float32Array.from(tenths, (each) => each / 10);
    this.attempts = {
      lane: column("attempts", "lane"), index: column("attempts", "index"), outcome: column("attempts", "outcome"),
      start: seconds(column("attempts", "start")), ran: seconds(column("attempts", "ran")),
      run: data.attempts.run && column("attempts", "run"),
    };
    this.attempts.stop = this.attempts.start.map((start, row) => start + this.attempts.ran[row]);
    this.instances = {
      launched: seconds(column("instances", "launched")), registered: seconds(column("instances", "registered")),
      ended: seconds(column("instances", "ended")), interrupted: column("instances", "interrupted"),
      kind: column("instances", "kind"), ids: data.instances.ids,
    };
    this.lanes = this.instances.launched.length;
    Object.assign(this.attempts, slots(this.attempts, this.lanes));
    this.whole = { t0: 0, t1: data.seconds, l0: 0, l1: this.lanes };
    this.view = { ...this.whole };
    this.button("+", "Zoom in", () => this.zoom(0.5));
    this.button("−", "Zoom out", () => this.zoom(2));
    this.button("Whole", "Show the whole run", () => this.show(this.whole));
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;  // else the page scrolls
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => { this.drag = [event.offsetX, event.offsetY, { ...this.view }]; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointerup", () => { this.drag = null; });
  }

  /** Shows the part that the picture before it showed. */
  resume({ view, whole }) {
    if (Object.keys(view).some((each) => view[each] !== whole[each])) this.view = { ...view, l1: Math.min(view.l1, this.lanes) };
  }

  zoom(factor, x = LEFT + this.plotWidth / 2, y = TOP + this.plotHeight / 2) {
    const { t0, t1, l0, l1 } = this.view, at = this.secondsAt(x), lane = this.laneAt(y);
    const span = Math.min(this.whole.t1, Math.max(5, (t1 - t0) * factor)), lanes = Math.min(this.lanes, Math.max(4, (l1 - l0) * factor));
    const left = at - (at - t0) / (t1 - t0) * span, top = lane - (lane - l0) / (l1 - l0) * lanes;
    this.show({ t0: left, t1: left + span, l0: top, l1: top + lanes });
  }

  show(view) {
    const slide = (low, high, most) => {
      const shift = low < 0 ? -low : high > most ? most - high : 0;
      return [Math.max(0, low + shift), Math.min(most, high + shift)];
    };
    const [t0, t1] = slide(view.t0, view.t1, this.whole.t1), [l0, l1] = slide(view.l0, view.l1, this.lanes);
    this.view = { t0, t1, l0, l1 };
    this.draw();
  }

  get plotWidth() { return Math.max(1, this.width - LEFT - 8); }
  get plotHeight() { return Math.max(1, this.height - BOTTOM - TOP); }
  secondsAt(x) { return this.view.t0 + (x - LEFT) / this.plotWidth * (this.view.t1 - this.view.t0); }
  laneAt(y) { return this.view.l0 + (y - TOP) / this.plotHeight * (this.view.l1 - this.view.l0); }
  xOf(at) { return LEFT + (at - this.view.t0) / (this.view.t1 - this.view.t0) * this.plotWidth; }
  yOf(lane) { return TOP + (lane - this.view.l0) / (this.view.l1 - this.view.l0) * this.plotHeight; }

  key(event) {
    const { t0, t1, l0, l1 } = this.view, dt = (t1 - t0) / 5, dl = (l1 - l0) / 5;
    const moves = { ArrowLeft: [-dt, 0], ArrowRight: [dt, 0], ArrowUp: [0, -dl], ArrowDown: [0, dl] };
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    if (event.key in moves) {
      const [t, l] = moves[event.key];
      this.show({ t0: t0 + t, t1: t1 + t, l0: l0 + l, l1: l1 + l });
    } else if (event.key === "+" || event.key === "=") this.zoom(0.5);
    else if (event.key === "-") this.zoom(2);
    else if (event.key === "0") this.show(this.whole);
    else return false;
    this.say(`${duration(this.view.t0)} to ${duration(this.view.t1)}, rows ${number(Math.floor(this.view.l0) + 1)} to ${number(Math.ceil(this.view.l1))}`);
    return true;
  }

  point(x, y) {
    if (this.drag) {
      const [fromX, fromY, view] = this.drag, t = (fromX - x) / this.plotWidth * (view.t1 - view.t0), l = (fromY - y) / this.plotHeight * (view.l1 - view.l0);
      return this.show({ t0: view.t0 + t, t1: view.t1 + t, l0: view.l0 + l, l1: view.l1 + l });
    }
    const lane = Math.floor(this.laneAt(y)), at = this.secondsAt(x);
    if (lane < 0 || lane >= this.lanes || x < LEFT || y > TOP + this.plotHeight) return this.say("");
    const depth = this.attempts.depth[lane], slot = Math.floor((this.laneAt(y) - lane) * depth);
    const row = attemptAt(this.attempts, lane, slot, at, 2 * (this.view.t1 - this.view.t0) / this.plotWidth);
    const { ids, kind, launched, ended } = this.instances;
    const where = `${ids[lane]} (${this.data.kinds[kind[lane]]}), ${duration(launched[lane])} to ${duration(ended[lane])}`;
    if (row < 0) return this.say(where);
    const { index, outcome, start, ran, run } = this.attempts, of = run ? ` of ${this.data.runs[run[row]]}` : "";
    this.say(`task ${index[row]}${of}: ${SAID[outcome[row]]} after ${duration(ran[row])}, from ${duration(start[row])} on ${where}`);
  }

  draw() {
    const enough = this.lanes * LANE_PX + TOP + BOTTOM;
    if (this.canvas.clientHeight > enough) this.canvas.style.height = `${Math.max(120, enough)}px`;
    const context = this.begin(), perLane = this.plotHeight / (this.view.l1 - this.view.l0);
    if (perLane >= NEAR_PX) this.drawNear(context, perLane); else this.drawFar(context);
    this.drawEnds(context, perLane);
    this.drawAxes(context);
    this.canvas.dataset.drawn = "yes";
  }

  drawFar(context) {
    const width = Math.round(this.plotWidth), height = Math.round(this.plotHeight), view = this.view;
    const busy = raster(this.attempts, view, width, height), alive = this.aliveIn(width, height);
    const image = context.createImageData(width, height), colours = KINDS.map((name) => this.rgb(name));
    const surface = this.rgb("surface"), idle = this.rgb("alive"), pixelLanes = Math.max(1, (view.l1 - view.l0) / height);
    const full = (view.t1 - view.t0) / width * pixelLanes;
    for (let pixel = 0; pixel < width * height; pixel++) {
      let sum = 0, red = 0, green = 0, blue = 0;
      for (let kind = 0, at = pixel * KINDS.length; kind < KINDS.length; kind++, at++) {
        const share = busy[at];
        if (!share) continue;
        sum += share;
        red += share * colours[kind][0];
        green += share * colours[kind][1];
        blue += share * colours[kind][2];
      }
      const here = Math.min(1, alive[pixel] / full), strong = sum ? Math.min(1, Math.max(0.3, sum / full)) : 0;
      const mix = (part, of) => {
        const ground = surface[part] + (idle[part] - surface[part]) * here;
        return sum ? ground + (of / sum - ground) * strong : ground;
      };
      image.data[pixel * 4] = mix(0, red);
      image.data[pixel * 4 + 1] = mix(1, green);
      image.data[pixel * 4 + 2] = mix(2, blue);
      image.data[pixel * 4 + 3] = 255;
    }
    const scratch = new OffscreenCanvas(width, height);
    scratch.getContext("2d").putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(scratch, LEFT, TOP);
  }

  aliveIn(width, height) {
    const one = new Uint8Array(this.lanes).fill(1);
    const lives = { lane: Uint32Array.from(one, (_, lane) => lane), start: this.instances.launched, stop: this.instances.ended, outcome: one };
    const sums = raster(lives, this.view, width, height), alive = new Float32Array(width * height);
    for (let pixel = 0; pixel < alive.length; pixel++) alive[pixel] = sums[pixel * KINDS.length];
    return alive;
  }

  drawNear(context, perLane) {
    const { lane, start, stop, outcome, slot, depth } = this.attempts, view = this.view;
    const { launched, registered, ended } = this.instances;
    context.save();
    context.beginPath();
    context.rect(LEFT, TOP, this.plotWidth, this.plotHeight);
    context.clip();
    for (let each = Math.max(0, Math.floor(view.l0)); each < Math.min(this.lanes, view.l1); each++) {
      context.fillStyle = this.colour("alive");
      context.fillRect(this.xOf(launched[each]), this.yOf(each) + 0.5, Math.max(1, this.xOf(ended[each]) - this.xOf(launched[each])), perLane - 1);
      context.fillStyle = this.colour("starting");
      context.globalAlpha = 0.45;  // until it registered
      context.fillRect(this.xOf(launched[each]), this.yOf(each) + 0.5, Math.max(0, this.xOf(registered[each] || ended[each]) - this.xOf(launched[each])), perLane - 1);
      context.globalAlpha = 1;
    }
    const colours = KINDS.map((name) => this.colour(name));
    for (let row = 0; row < lane.length; row++) {
      if (lane[row] < view.l0 - 1 || lane[row] >= view.l1 || stop[row] < view.t0 || start[row] > view.t1) continue;
      const high = (perLane - 1) / depth[lane[row]], x = this.xOf(start[row]), wide = this.xOf(stop[row]) - x;
      context.fillStyle = colours[KIND_OF[outcome[row]]];
      context.fillRect(x, this.yOf(lane[row]) + 0.5 + slot[row] * high, Math.max(1, wide - (wide > 4 ? 1 : 0)), Math.max(1, high - (high > 4 ? 1 : 0)));
    }
    context.restore();
  }

  drawEnds(context, perLane) {
    const { interrupted, ended } = this.instances, high = Math.max(2, perLane);
    context.fillStyle = this.colour("text");
    for (let lane = 0; lane < this.lanes; lane++) {
      if (!interrupted[lane] || lane < this.view.l0 - 1 || lane >= this.view.l1) continue;
      const x = this.xOf(ended[lane]);
      if (x >= LEFT && x <= LEFT + this.plotWidth) context.fillRect(x - 1, this.yOf(lane), perLane < NEAR_PX ? 2 : 3, high);
    }
  }

  drawAxes(context) {
    context.fillStyle = this.colour("muted");
    context.textBaseline = "middle";
    context.textAlign = "center";
    const { t0, t1 } = this.view, most = Math.max(2, this.plotWidth / 110), { begun } = this.data;
    const named = begun ? clockTicks(begun, t0, t1, most) : ticks(t0, t1, most).map((at) => [at, at ? duration(at).replace(/\.0(?= s)| 00[ms]$/, "") : "0"]);
    for (const [at, text] of named) {
      const x = this.xOf(at);
      context.fillRect(x, TOP + this.plotHeight, 1, 4);
      context.fillText(text, Math.min(x, this.width - 24), TOP + this.plotHeight + 15);
    }
    context.textAlign = "right";
    for (const lane of laneTicks(this.view.l0, this.view.l1)) {
      const y = this.yOf(lane);
      context.fillRect(LEFT - 6, y, 4, 1);
      context.fillText(number(lane + 1), LEFT - 10, Math.max(7, y + 1));
    }
  }
}

/** Instances as squares by type and zone, coloured by how much of them is used. */
class Cells extends Picture {
  constructor(canvas, data) {
    super(canvas, data);
    this.column = Object.fromEntries(Object.entries(data.columns).map(([name, each]) => [name, decode(each)]));
    this.work = Object.fromEntries(Object.entries(data.work).map(([name, each]) => [name, decode(each)]));
    this.chosen = -1;
    this.metric = "cpu";
    for (const [metric, text] of [["cpu", "CPU"], ["memory", "Memory"], ["gpu", "GPU"]]) {
      const button = this.button(text, `Colour by ${text}`, () => this.by(metric));
      button.dataset.metric = metric;
    }
    this.by("cpu");
  }

  resume({ metric, chosen, data }) {
    this.by(metric);
    this.chosen = chosen < 0 ? -1 : this.data.ids.indexOf(data.ids[chosen]);
  }

  by(metric) {
    this.metric = metric;
    for (const each of this.tools.querySelectorAll("button")) each.setAttribute("aria-pressed", String(each.dataset.metric === metric));
    if (this.width) this.draw();
  }

  draw() {
    const { types, zones } = this.data, { type, zone } = this.column;
    const tallest = Math.max(320, window.innerHeight * 0.7);
    this.layout = blocks(type, zone, types.length, zones.length, this.canvas.clientWidth, tallest);
    const wanted = Math.round(this.layout.height);
    if (this.canvas.clientHeight !== wanted) this.canvas.style.height = `${wanted}px`;
    const context = this.begin(), { x, y, side, tops, column } = this.layout, used = this.column[this.metric];
    context.fillStyle = this.colour("muted");
    context.textBaseline = "middle";
    zones.forEach((name, place) => context.fillText(column > 90 ? name : name.slice(-2), LEFT + 50 + place * column, 10));
    context.fillStyle = this.colour("text");
    types.forEach((name, place) => context.fillText(name, 0, tops[place] + 12, LEFT + 44));
    const gap = side > 6 ? 2 : 1;
    for (let row = 0; row < type.length; row++) {
      context.fillStyle = used[row] === 255 ? this.colour("alive") : `rgb(${viridis(used[row] / 100).join(",")})`;
      context.fillRect(x[row], y[row], side - gap, side - gap);
    }
    if (this.chosen >= 0) {
      context.strokeStyle = this.colour("text");
      context.lineWidth = 2;
      context.strokeRect(x[this.chosen] - 1, y[this.chosen] - 1, side - gap + 2, side - gap + 2);
    }
    this.canvas.dataset.drawn = "yes";
  }

  choose(row) {
    if (row === this.chosen) return;
    this.chosen = row;
    this.draw();
    if (row < 0) return this.say("");
    const { cpu, memory, gpu, type, zone, state } = this.column, share = (value) => value === 255 ? "none" : `${value} %`;
    this.say(`${this.data.ids[row]}, ${this.data.types[type[row]]} in ${this.data.zones[zone[row]]}, ${this.data.states[state[row]]}: ` +
      `CPU ${share(cpu[row])}, memory ${share(memory[row])}, GPU ${share(gpu[row])}; ${this.busy(row)}`);
  }

  busy(row) {
    const tasks = this.column.tasks[row];
    return tasks ? `${number(tasks)} ${tasks === 1 ? "task" : "tasks"}: ${workOn(row, this.work, this.data.runs)}` : "no task";
  }

  point(px, py) {
    const { x, y, side } = this.layout;
    for (let row = 0; row < x.length; row++) {
      if (px >= x[row] && px < x[row] + side && py >= y[row] && py < y[row] + side) return this.choose(row);
    }
    this.choose(-1);
  }

  key(event) {
    const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: [0, -1], ArrowDown: [0, 1], Home: "first", End: "last" };
    const move = moves[event.key], last = this.column.type.length - 1;
    if (move === undefined || last < 0) return false;
    if (move === "first" || this.chosen < 0) this.choose(0);
    else if (move === "last") this.choose(last);
    else if (typeof move === "number") this.choose(Math.min(last, Math.max(0, this.chosen + move)));
    else this.choose(this.beside(move[1]));
    return true;
  }

  beside(down) {
    const { x, y } = this.layout, here = this.chosen;
    let best = here, least = Infinity;
    for (let row = 0; row < x.length; row++) {
      const away = (y[row] - y[here]) * down;
      if (away > 0 && away * 50 + Math.abs(x[row] - x[here]) < least) { least = away * 50 + Math.abs(x[row] - x[here]); best = row; }
    }
    return best;
  }
}

const PICTURES = { lanes: Lanes, cells: Cells };
const last = new Map();  // figure -> the picture that was drawn last

/** Draws every canvas below `root` that is not drawn yet. data: figure -> what it draws. */
export function drawAll(root, data) {
  for (const canvas of root.querySelectorAll("canvas[data-of]")) {
    const own = data[canvas.dataset.of];
    if (own && !canvas.dataset.begun) {
      canvas.dataset.begun = "yes";
      const picture = new PICTURES[canvas.dataset.kind](canvas, own), before = last.get(canvas.dataset.of);
      if (before) {
        before.end();
        picture.resume(before);
      }
      last.set(canvas.dataset.of, picture);
      picture.draw();
    }
  }
}

if (typeof document !== "undefined") {
  const began = performance.now();
  drawAll(document, JSON.parse(document.getElementById("data").textContent));
  document.documentElement.dataset.drawnIn = String(Math.round(performance.now() - began));
  document.addEventListener("argosy:figures", (event) => drawAll(event.detail.root, event.detail.data));
}
