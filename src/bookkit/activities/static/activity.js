// What all activities share: state kept in this browser alone, the page's progress, and messages for every reader.
// Nothing that was stored is ever read as HTML: scripts set values, text and `hidden`, no markup.
const bookkit = {
  kinds: {}, // name -> { shape, start }, filled by the scripts of the families
  key: `bookkit:${location.pathname}`,

  // `shape` names what a kind keeps, and as which type: "text", "number", "boolean" or "texts".
  // `start(section, state, tools)` brings an activity to the state that was kept, and listens.
  define(name, shape, start) {
    this.kinds[name] = { shape, start };
  },

  fits(value, type) {
    if (type === "texts") return Array.isArray(value) && value.length <= 200 && value.every((text) => this.fits(text, "text"));
    if (type === "text") return typeof value === "string" && value.length <= 20000;
    return type === "number" ? Number.isSafeInteger(value) && value >= 0 : typeof value === type;
  },

  // What was stored may be old, broken or hostile: only what has the expected shape is taken.
  tame(stored, shape) {
    const own = (key) => stored !== null && typeof stored === "object" && Object.hasOwn(stored, key);
    return Object.fromEntries(Object.entries(shape).flatMap(([key, type]) => (own(key) && this.fits(stored[key], type) ? [[key, stored[key]]] : [])));
  },

  load() {
    try {
      return JSON.parse(localStorage.getItem(this.key)) ?? {};
    } catch {
      return {}; // no JSON, or a private window
    }
  },

  save(states) {
    try {
      localStorage.setItem(this.key, JSON.stringify(states));
    } catch {
      // a private window, or no space: the page works, and forgets
    }
  },

  forget() {
    try {
      localStorage.removeItem(this.key);
    } catch {
      // there was nothing
    }
    location.reload();
  },

  start() {
    const progress = document.querySelector(".activity-progress");
    // An activity whose script is missing stays as it is without scripts.
    const sections = [...document.querySelectorAll("section.activity")].filter((section) => Object.hasOwn(this.kinds, section.dataset.kind));
    if (!progress || !sections.length) return;
    const stored = this.load();
    const states = {};
    const count = () => {
      const done = sections.filter((section) => section.dataset.done).length;
      progress.querySelector(".activity-count").textContent = `Activities done on this page: ${done} of ${sections.length}`;
    };
    for (const section of sections) {
      const { shape, start } = this.kinds[section.dataset.kind];
      states[section.id] = this.tame(Object.hasOwn(stored, section.id) ? stored[section.id] : {}, shape);
      section.classList.add("scripted");
      start(section, states[section.id], {
        save: () => this.save(states),
        say: (text) => (section.querySelector(".activity-status").textContent = text),
        done() {
          section.dataset.done = "true";
          count();
        },
        // `handlers` by data-action
        on(handlers) {
          section.addEventListener("click", (event) => {
            const button = event.target.closest("[data-action]");
            if (button && Object.hasOwn(handlers, button.dataset.action)) handlers[button.dataset.action](button);
          });
        },
      });
    }
    progress.classList.add("scripted");
    count();
    progress.querySelector("[data-action=clear]").addEventListener("click", () => {
      if (confirm("Forget your answers and notes on this page?")) this.forget();
    });
  },
};
addEventListener("DOMContentLoaded", () => bookkit.start());
