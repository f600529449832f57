// What all activities share: state kept in this browser alone, the page's progress, and messages for every reader.
const bookkit = {
  kinds: {}, // name -> { shape, start }, filled by the scripts of the families

  // `shape` names what a kind keeps, and as which type: "string", "number", "boolean" or "strings".
  // `start(section, state, tools)` brings an activity to the state that was kept, and listens.
  define(names, shape, start) {
    for (const name of names) this.kinds[name] = { shape, start };
  },

  fits(value, type) {
    if (type === "strings") return Array.isArray(value) && value.length <= 200 && value.every((v) => this.fits(v, "string"));
    if (type === "number") return Number.isInteger(value) && value >= 0;
    return typeof value === type && (type !== "string" || value.length <= 20000);
  },

  // What was stored may be old, broken or hostile: take only what has the expected shape.
  tame(stored, shape) {
    const kept = Object.entries(shape).filter(([key, type]) => stored && Object.hasOwn(stored, key) && this.fits(stored[key], type));
    return Object.fromEntries(kept.map(([key]) => [key, stored[key]]));
  },

  load(key) {
    try {
      const stored = JSON.parse(localStorage.getItem(key));
      return stored && typeof stored === "object" ? stored : {};
    } catch {
      return {};
    }
  },

  start() {
    const progress = document.querySelector(".activity-progress");
    if (!progress) return;
    document.documentElement.classList.add("scripted");
    const key = `bookkit:${progress.dataset.page}`;
    const stored = this.load(key);
    const sections = [...document.querySelectorAll("section.activity")];
    const states = Object.fromEntries(
      sections.map((section) => [section.id, this.tame(Object.hasOwn(stored, section.id) ? stored[section.id] : {}, this.kinds[section.dataset.kind].shape)]),
    );
    const save = () => {
      try {
        localStorage.setItem(key, JSON.stringify(states));
      } catch {
        // a private window: the page works, and forgets
      }
    };
    const count = () => {
      const done = sections.filter((section) => section.dataset.done).length;
      progress.querySelector(".activity-count").textContent = `Activities done on this page: ${done} of ${sections.length}`;
    };
    for (const section of sections) {
      this.kinds[section.dataset.kind].start(section, states[section.id], {
        save,
        say: (text) => (section.querySelector(".activity-status").textContent = text),
        done() {
          section.dataset.done = "true";
          count();
        },
        // `handlers` by data-action
        on(handlers) {
          section.addEventListener("click", (event) => {
            const button = event.target.closest("[data-action]");
            if (button && handlers[button.dataset.action]) handlers[button.dataset.action](button);
          });
        },
      });
    }
    count();
    progress.querySelector("[data-action=clear]").addEventListener("click", () => {
      if (!confirm("Forget your answers and notes on this page?")) return;
      localStorage.removeItem(key);
      location.reload();
    });
  },
};
addEventListener("DOMContentLoaded", () => bookkit.start());
