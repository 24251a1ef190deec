// The coordinate values of a picture's axes.

/** Returns a number with its unit. Degrees of latitude and longitude have a letter instead of a sign. */
function withUnit(text, unit) {
  const [, direction] = /^degrees?_?(north|east|N|E)$/.exec(unit) ?? [];
  if (direction) {
    const letters = direction[0].toUpperCase() === "N" ? "NS" : "EW";
    const isBelow = text.startsWith("-");
    return `${isBelow ? text.slice(1) : text}° ${letters[isBelow ? 1 : 0]}`;
  }
  return unit && unit !== "1" ? `${text} ${unit}` : text;
}

/** A dimension of an array: its name, its length, and its coordinate values if it has any. */
class Axis {
  constructor(told, number, length) {
    this.number = number;
    this.length = length;
    this.label = told[`axis${number}name`] ?? `axis ${number}`;
    this.unit = told[`axis${number}unit`] ?? "";
    const place = told[`axis${number}at`];
    this.values = place ? new Blocks(place, length) : null;
  }

  /** Loads the coordinate value at an index. An axis whose values cannot be read has none. */
  async load(index) {
    try {
      await this.values?.at(index);
    } catch (error) {
      if (error instanceof Changed) throw error;
      this.values = null;
    }
  }

  /** Returns the text of the coordinate value at an index, or null if none is loaded. */
  text(index) {
    const text = this.values?.loadedText(index);
    // A time without a time of day is a day.
    return text === undefined || text === null ? null : withUnit(text.replace(/T00:00:00$/, ""), this.unit);
  }

  isLoaded(index) {
    return !this.values || this.values.loadedText(index) !== undefined;
  }
}
