// What a script finds around it: `codemode`, timers, `console`, `yaml`. Evaluated once per sandbox, before the script.
// It answers the host through one function and asks it through one; a script that changes built-ins harms itself only.
(() => {
  "use strict";
  const host = globalThis.__host;
  delete globalThis.__host;

  // A script may replace any of these afterwards; ours stay as they were.
  const { parse, stringify } = JSON;
  const { defineProperty, freeze, keys, create } = Object;
  const { apply, construct, has } = Reflect;
  const ErrorClass = Error, PromiseClass = Promise, TypeErrorClass = TypeError, SetClass = Set, MapClass = Map;
  const StringOf = String, NumberOf = Number, isFinite = Number.isFinite, isArray = Array.isArray;
  const then = Promise.prototype.then, slice = String.prototype.slice, wellFormed = String.prototype.toWellFormed;
  const join = Array.prototype.join, from = Array.from, max = Math.max;
  const cut = (text, most) => apply(slice, text, [0, most]);
  const hidden = (object, name, value) =>
    defineProperty(object, name, { value, writable: true, configurable: true, enumerable: false });

  class ToolCallDeniedError extends ErrorClass {
    constructor(toolName, reason, said = "") {
      super(`${toolName} was not allowed: ${reason}${said && `. A person says: ${said}`}`);
      hidden(this, "toolName", toolName);
      hidden(this, "reason", reason);
    }
  }
  hidden(ToolCallDeniedError.prototype, "name", "ToolCallDeniedError");
  hidden(globalThis, "ToolCallDeniedError", ToolCallDeniedError);

  // ---- chance: every sandbox is a copy of one, and must not draw the same numbers

  const seed = (numbers) => {
    let [a, b, c, d] = numbers;
    const next = () => {
      const sum = (a + b | 0) + d | 0;
      d = d + 1 | 0;
      a = b ^ (b >>> 9);
      b = c + (c << 3) | 0;
      c = ((c << 21) | (c >>> 11)) + sum | 0;
      return sum >>> 0;
    };
    for (let i = 0; i < 12; i++) next();
    hidden(Math, "random", function random() { return ((next() >>> 5) * 67108864 + (next() >>> 6)) / 9007199254740992; });
  };

  // ---- calls

  const waiting = create(null);
  let missed = "";

  // Long texts are refused before anything is made of them; the host counts again, exactly.
  const mostText = 1 << 20;
  let written = 0;
  const strict = (_key, value) => {
    if (typeof value === "number" && !isFinite(value)) throw new TypeErrorClass(`${value} is no JSON`);
    if (typeof value === "string" && (written += value.length) > mostText) {
      throw new TypeErrorClass(`what it is called with is larger than ${mostText} bytes as JSON`);
    }
    return value;
  };

  const textOf = (name, given) => {
    if (given.length > 1) throw new TypeErrorClass(`${name} takes one object of arguments`);
    const first = given.length ? given[0] : undefined;
    if (first === undefined || first === null) return "{}";
    if (typeof first !== "object" || isArray(first)) {
      throw new TypeErrorClass(`${name} takes one object of arguments`);
    }
    // INVARIANT: the arguments are read once, here; what is judged and executed is this text.
    written = 0;
    const text = stringify(first, strict);
    if (typeof text !== "string") throw new TypeErrorClass(`${name}: its arguments are no JSON`);
    return text;
  };

  const toolOf = (name) => {
    const tool = function (...given) {
      const { stack } = new ErrorClass();
      const where = typeof stack === "string" ? apply(wellFormed, cut(stack, 2000), []) : "";
      return new PromiseClass((resolve, reject) => {
        // Everything crosses as one text: each crossing costs more than what it carries.
        const said = host(`call\0${name}\0${where}\0${textOf(name, given)}`);
        if (typeof said === "string") throw new TypeErrorClass(said);
        waiting[said] = { name, where, resolve, reject };
      });
    };
    defineProperty(tool, "name", { value: name });
    return freeze(tool);
  };

  const yamlText = (given) => {
    if (typeof given === "string") return given;
    for (const key of ["text", "yaml", "content", "input", "data"]) {
      if (typeof given?.[key] === "string") return given[key];
    }
    throw new TypeErrorClass("yaml.parse takes a text");
  };
  const helped = (said) => {
    const { refused, text } = parse(said);
    if (refused) throw new ErrorClass(refused);
    return text;
  };
  const yaml = freeze({
    parse: (given) => parse(helped(host(`yaml.parse\0${apply(wellFormed, yamlText(given), [])}`))),
    stringify: (value) => helped(host(`yaml.stringify\0${stringify(value) ?? "null"}`)),
  });
  hidden(globalThis, "yaml", yaml);

  const offer = ({ names, numbers }) => {
    seed(numbers);
    const tools = {};
    for (let i = 0; i < names.length; i++) {
      defineProperty(tools, names[i], { value: toolOf(names[i]), enumerable: true });
    }
    const builtIn = {
      utils__yaml__parse: async (given) => yaml.parse(given),
      utils__yaml__stringify: async (given) => yaml.stringify(given && has(given, "value") ? given.value : given),
    };
    for (const name of keys(builtIn)) {
      if (!has(tools, name)) defineProperty(tools, name, { value: builtIn[name] });
    }
    freeze(tools);
    const codemode = new Proxy(tools, {
      get(target, name) {
        // Remembered only to explain a call of something that is not there.
        if (typeof name === "string" && !has(target, name)) missed = name;
        return target[name];
      },
    });
    defineProperty(globalThis, "codemode", { value: codemode, enumerable: true });
  };

  const errorFor = (call, kind, text, result) => {
    const said = typeof result === "string" ? result : "";
    const error = kind === "denied" ? new ToolCallDeniedError(call.name, text, said) : new ErrorClass(text);
    if (kind === "error" && result !== null) hidden(error, "result", result);
    hidden(error, "stack", call.where);
    return error;
  };

  const settle = (answers) => {
    for (let i = 0; i < answers.length; i++) {
      const { id, kind, text, value } = answers[i];
      const call = waiting[id];
      delete waiting[id];
      if (kind === "value") call.resolve(value);
      else call.reject(errorFor(call, kind, text, value));
    }
  };

  // ---- timers: the clock stands still while calls wait, and moves to what is due next

  const timers = new MapClass();
  const { set: put, delete: drop, forEach: each } = MapClass.prototype;
  let clock = 0, lastTimer = 0;

  const timer = (repeat) => (action, delay, ...given) => {
    if (typeof action !== "function") throw new TypeErrorClass("a timer takes a function");
    const milliseconds = max(repeat ? 1 : 0, NumberOf(delay) || 0);
    const id = ++lastTimer;
    apply(put, timers, [id, { due: clock + milliseconds, every: repeat ? milliseconds : -1, action, given }]);
    return id;
  };
  const forget = (id) => { apply(drop, timers, [id]); };
  for (const [name, value] of [
    ["setTimeout", timer(false)], ["setInterval", timer(true)], ["clearTimeout", forget], ["clearInterval", forget],
  ]) hidden(globalThis, name, value);

  const nextDue = () => {
    let due = -1;
    apply(each, timers, [(one) => { if (due < 0 || one.due < due) due = one.due; }]);
    return due < 0 ? -1 : max(0, due - clock);
  };

  const fire = () => {
    let first = 0, found = null;
    apply(each, timers, [(one, id) => { if (!found || one.due < found.due) { first = id; found = one; } }]);
    if (!found) return;
    clock = max(clock, found.due);
    if (found.every < 0) forget(first);
    else found.due = clock + found.every;
    try { apply(found.action, undefined, found.given); } catch (error) { fail(error); }
  };

  // ---- console

  const plain = (_key, value) => typeof value === "bigint" ? `${value}n` : typeof value === "function" ? "[function]"
    : value instanceof MapClass ? from(value) : value instanceof SetClass ? from(value) : value;
  const shown = (value) => {
    try {
      if (typeof value === "string") return value;
      if (value instanceof ErrorClass) return `${value.name}: ${value.message}`;
      if (typeof value === "function") return `[function ${value.name}]`;
      if (typeof value === "object" && value !== null) return stringify(value, plain) ?? StringOf(value);
      return StringOf(value);
    } catch { return "[something that cannot be shown]"; }
  };
  const filled = (first, rest) => {
    let next = 0;
    const text = first.replace(/%[sdifjoOc%]/g, (mark) => {
      if (mark === "%%") return "%";
      if (next >= rest.length) return mark;
      const value = rest[next++];
      return mark === "%c" ? "" : mark === "%d" || mark === "%i" || mark === "%f" ? `${NumberOf(value)}` : shown(value);
    });
    return [text, ...rest.slice(next)];
  };
  const longest = 1 << 17;
  const print = (...given) => {
    let parts = given;
    try {
      if (typeof given[0] === "string" && given.length > 1 && given[0].includes("%")) {
        parts = filled(given[0], given.slice(1));
      }
    } catch { parts = given; }
    const texts = [];
    for (let i = 0; i < parts.length; i++) hidden(texts, i, shown(parts[i]));
    const text = apply(join, texts, [" "]) + "\n";
    host(`print\0${max(0, text.length - longest)}\0${apply(wellFormed, cut(text, longest), [])}`);
  };
  const quiet = () => {};
  hidden(globalThis, "console", {
    log: print, info: print, debug: print, warn: print, error: print, dir: (value) => print(value), table: print,
    trace: print, group: print, groupCollapsed: print, groupEnd: quiet, time: quiet, timeEnd: quiet, timeLog: quiet,
    count: quiet, countReset: quiet, clear: quiet,
    assert: (holds, ...given) => { if (!holds) print("Assertion failed:", ...given); },
  });

  // ---- the script itself

  let state = "running", outcome = undefined;
  const over = (how, what) => { if (state === "running") { state = how; outcome = what; host(how); } };
  const end = (value) => over("ended", value);
  const fail = (error) => over("failed", error);

  // A last expression that is a function is the script; its result is the result.
  const begin = async (main, form) => {
    const found = form === "body" ? main() : (await main).value;
    const value = await found;
    return form !== "body" && typeof value === "function" ? value() : value;
  };
  const run = (main, form) => { apply(then, begin(main, form), [end, fail]); };

  const resultText = (most) => {
    if (typeof outcome === "string" && outcome.length > most) return outcome;
    const made = stringify(outcome, (_key, value) =>
      typeof value === "string" ? apply(wellFormed, value, []) : typeof value === "bigint" ? StringOf(value) : value);
    return made === undefined ? "null" : made;
  };
  const attempt = (read, otherwise) => { try { return read(); } catch { return otherwise; } };
  const errorText = (error) => {
    if (!(error instanceof ErrorClass)) return attempt(() => `Thrown: ${shown(error)}`, "Something was thrown");
    const text = `${attempt(() => StringOf(error.name), "Error")}: ${attempt(() => StringOf(error.message), "")}`;
    const hint = missed && text === "TypeError: not a function" ? ` (codemode has no tool "${cut(missed, 100)}")` : "";
    return text + hint;
  };
  const failure = () => {
    const stack = cut(attempt(() => StringOf(outcome.stack), ""), 4000);
    return apply(wellFormed, `${cut(errorText(outcome), 8000)}\0${stack}`, []);
  };

  return (what, given, form) => {
    switch (what) {
      case "offer": return offer(parse(given));
      case "run": return run(given, form);
      case "settle": return settle(parse(given));
      case "fire": return fire();
      case "due": return nextDue();
      case "failure": return failure();
      case "measure": { outcome = resultText(given); return outcome.length; }
      case "result": return outcome;
    }
  };
})()
