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

/** Creates a line for an error message. */
function complaint() {
  const line = make("p", { className: "error", hidden: true, role: "alert" });
  const say = (error) => {
    line.hidden = !error;
    line.textContent = error ? error.message : "";
  };
  return { line, say };
}

/**
 * Runs one task at a time. Of the tasks that arrive meanwhile, runs only the last one, so that the
 * display follows a dragged control as fast as the server responds.
 */
class Latest {
  constructor(say) {
    this.say = say;
    this.isBusy = false;
    this.waiting = null;
  }

  async run(work) {
    this.waiting = work;
    if (this.isBusy) return;
    this.isBusy = true;
    while (this.waiting) {
      const next = this.waiting;
      this.waiting = null;
      try {
        await next();
        this.say(null);
      } catch (error) {
        this.say(error);
      }
    }
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
