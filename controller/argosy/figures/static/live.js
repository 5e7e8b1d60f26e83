// Keeps a page current: it asks for changes while the page is visible.

/** How long until the next question, in ms: longer after failures, a minute at most. */
export function pause(usual, failures) {
  return Math.min(60000, usual * 2 ** Math.min(failures, 6));
}

const isAtEnd = (box) => box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
const toEnd = (box) => { box.scrollTop = box.scrollHeight; };

/** Puts new parts in place of the old; tables that were open stay open, and focus and scrolled places stay. A box with
    `data-follow` that showed its end shows the new one. */
export function replaceParts(root, parts) {
  for (const [key, html] of Object.entries(parts)) {
    const part = root.getElementById(key);
    if (!part) continue;
    const open = [...part.querySelectorAll("details")].map((each) => each.open), focused = part.contains(root.activeElement);
    const boxes = [...part.querySelectorAll(".scroll")].map((each) => [each.scrollTop, isAtEnd(each)]);
    if (focused && part.querySelector("form")) continue;  // someone is typing
    part.innerHTML = html;
    part.querySelectorAll(".scroll").forEach((each, place) => {
      const [top, end] = boxes[place] ?? [0, true];
      if (end && "follow" in each.dataset) toEnd(each);
      else each.scrollTop = top;
    });
    part.querySelectorAll("details").forEach((each, place) => { each.open = open[place] ?? false; });
    if (focused) part.querySelector("canvas, [tabindex]")?.focus({ preventScroll: true });
  }
}

/** The saved views, [[name, query]], with this one; without a query it goes. */
export function withView(views, name, query) {
  const others = views.filter(([each]) => each !== name);
  return query === null ? others : [...others, [name, query]].slice(-30);
}

/** Links to the views of this list that the browser has stored, and the way to store the present one. */
function showViews() {
  const box = document.querySelector("[data-views]");
  if (!box || box.childElementCount) return;
  const key = `argosy:views:${box.dataset.views}`, make = (name, facts) => Object.assign(document.createElement(name), facts);
  const read = () => { try { return JSON.parse(localStorage.getItem(key)) ?? []; } catch { return []; } };
  const keep = (name, query) => {
    localStorage.setItem(key, JSON.stringify(withView(read(), name, query)));
    box.replaceChildren();
    showViews();
  };
  for (const [name, query] of read()) {
    const gone = make("button", { type: "button", textContent: "×", ariaLabel: `Forget the view ${name}` });
    gone.addEventListener("click", () => keep(name, null));
    box.append(make("a", { textContent: name, href: `?${query}`, className: "act" }), gone);
  }
  const label = make("label"), input = make("input", { maxLength: 60, autocomplete: "off" }), save = make("button", { type: "button", textContent: "Save this view" });
  label.append(make("span", { textContent: "Name of this view" }), input);
  save.addEventListener("click", () => input.value.trim() && keep(input.value.trim(), location.search.slice(1)));
  box.append(label, save);
}

async function follow(usual) {
  let version = "", failures = 0;
  document.querySelectorAll(".scroll[data-follow]").forEach(toEnd);
  const fresh = document.getElementById("fresh");
  for (;;) {
    await new Promise((done) => setTimeout(done, pause(usual, failures)));
    while (document.hidden) await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
    try {
      const reply = await fetch(`${location.pathname}?changes${location.search.replace("?", "&")}`, { headers: version ? { "If-None-Match": version } : {} });
      if (reply.status === 200) {
        const { parts, data } = await reply.json();
        version = reply.headers.get("ETag");
        replaceParts(document, parts);
        document.dispatchEvent(new CustomEvent("argosy:figures", { detail: { root: document, data } }));
      } else if (reply.status !== 304) throw new Error(`status ${reply.status}`);
      failures = 0;
      fresh.textContent = "";
      fresh.classList.remove("stale");
    } catch {
      failures += 1;
      fresh.textContent = "No answer: is argosy ui still running?";
      fresh.classList.add("stale");
    }
  }
}

if (typeof document !== "undefined") {
  showViews();
  document.addEventListener("argosy:figures", showViews);
  follow(Number(document.body.dataset.poll));
}
