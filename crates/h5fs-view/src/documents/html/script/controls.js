// Buttons, sliders and readouts.

/** Creates an element. Properties named `data-…`, `aria-…` and `role` become attributes. `inner` is the content. */
function make(name, properties = {}, ...inner) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (/^(aria-|data-|role$)/.test(key)) element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...inner);
  return element;
}

function button(text, label, press) {
  const own = make("button", { type: "button", textContent: text, title: label });
  own.setAttribute("aria-label", label);
  own.addEventListener("click", press);
  return own;
}

/** Formats a number in a few characters. */
function short(value) {
  const rounded = Number(value.toPrecision(6));
  return Math.abs(rounded) >= 1e7 || (rounded !== 0 && Math.abs(rounded) < 1e-4)
    ? rounded.toExponential()
    : String(rounded);
}

/** Wraps `around` around `inner`, in the place of `inner`. */
function wrap(inner, around) {
  inner.replaceWith(around);
  around.prepend(inner);
  return around;
}

/** Returns the number in a field; null for an empty field and for a text that is no number. */
function numberIn(field) {
  const text = field.value.trim();
  return text && Number.isFinite(Number(text)) ? Number(text) : null;
}

/** Creates a line for an error message, with a button that tries again. */
function complaint() {
  const text = make("span");
  let retry = null;
  const again = button("try again", "send the failed request again", () => retry?.());
  const line = make("p", { className: "error", hidden: true, role: "alert" }, text, " ", again);
  const say = (error, repeat = null) => {
    line.hidden = !error;
    text.textContent = error ? error.message : "";
    retry = repeat;
    again.hidden = !repeat || error instanceof Changed;
  };
  return { line, say };
}

/** Milliseconds after which a running request is aborted, if its result is not needed any more. */
const PATIENCE = 700;

/** Milliseconds after which a part of the page shows that it loads. */
const NOTICE = 150;

/**
 * Runs one task at a time. Of the tasks that arrive meanwhile, runs only the last one, so that the
 * display follows a dragged control as fast as the server responds. A task that takes longer than
 * `PATIENCE` is aborted by the next one. `element` has the attribute `aria-busy` meanwhile.
 */
class Latest {
  constructor(say, element, closed) {
    this.say = say;
    this.element = element;
    this.isBusy = false;
    this.waiting = null;
    closed.addEventListener("abort", () => {
      this.waiting = null;
      this.control?.abort();
    });
  }

  async run(work) {
    this.waiting = work;
    if (this.isBusy) {
      const age = performance.now() - this.since;
      const { control } = this;
      setTimeout(() => control.abort(), Math.max(PATIENCE - age, 0));
      return;
    }
    this.isBusy = true;
    const notice = setTimeout(() => this.element.setAttribute("aria-busy", "true"), NOTICE);
    while (this.waiting) {
      const next = this.waiting;
      this.waiting = null;
      this.control = new AbortController();
      this.since = performance.now();
      try {
        await next(this.control.signal);
        this.say(null);
      } catch (error) {
        // An aborted task has no error to report.
        if (!this.control.signal.aborted) this.say(error, () => this.run(next));
      }
    }
    clearTimeout(notice);
    this.element.removeAttribute("aria-busy");
    this.isBusy = false;
  }
}

/** Returns whether another element needs the pressed key. */
function isTaken(event) {
  const { target } = event;
  return (
    event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey ||
    target.closest("input, select, textarea, [tabindex='0']") !== null
  );
}
