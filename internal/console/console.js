// The script of a console: live updates, filters that act while one types, keys, copy.
// Every page works without it.
'use strict';
(() => {
  const state = document.getElementById('live-state');
  const say = (text, on) => {
    if (!state) return;
    state.textContent = text;
    state.className = 'state ' + (on ? 'on' : 'off');
  };

  const decorate = (root) => {
    for (const button of root.querySelectorAll('[data-copy]')) button.hidden = false;
  };

  // morph makes the children of one element like those of another, and leaves alone
  // what is the same: focus, selection, open details, scroll positions and the row that
  // the keys are at stay.
  const keyOf = (n) => (n.nodeType === 1 ? n.id : '');
  const same = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);
  const attributes = (from, to) => {
    const at = from.classList.contains('at');
    for (const { name } of [...from.attributes]) {
      if (!to.hasAttribute(name) && !(name === 'open' && from.nodeName === 'DETAILS') && !(name === 'hidden' && from.hasAttribute('data-copy'))) from.removeAttribute(name);
    }
    for (const { name, value } of [...to.attributes]) {
      if (name === 'hidden' && from.hasAttribute('data-copy')) continue;
      if (from.getAttribute(name) !== value) from.setAttribute(name, value);
    }
    if (at) from.classList.add('at');
  };
  const morph = (from, to) => {
    let at = from.firstChild;
    for (const next of [...to.childNodes]) {
      if (at && !same(at, next) && keyOf(next)) {
        let found = at.nextSibling;
        while (found && !same(found, next)) found = found.nextSibling;
        if (found) from.insertBefore(found, at), (at = found);
      }
      if (at && same(at, next)) {
        if (at.nodeType === 1) {
          if (at !== document.activeElement || !('value' in at)) {
            attributes(at, next);
            morph(at, next);
          }
        } else if (at.nodeValue !== next.nodeValue) {
          at.nodeValue = next.nodeValue;
        }
        at = at.nextSibling;
      } else {
        from.insertBefore(document.importNode(next, true), at);
      }
    }
    while (at) {
      const gone = at;
      at = at.nextSibling;
      gone.remove();
    }
  };

  const live = () => document.getElementById('live');
  const apply = (html) => {
    const part = live();
    if (!part) return;
    const chosen = document.getSelection();
    if (chosen && !chosen.isCollapsed && part.contains(chosen.anchorNode)) return; // somebody copies
    const next = document.createElement('div');
    next.innerHTML = html;
    const inner = next.querySelector('#live') || next;
    morph(part, inner);
    decorate(part);
  };

  // A browser has six connections to a host: only the page that is seen holds one.
  let stream = null;
  const stop = () => {
    if (stream) stream.close();
    stream = null;
  };
  const start = () => {
    const address = document.body.dataset.live;
    if (!address || stream || document.hidden) return;
    let failures = 0;
    stream = new EventSource(address);
    stream.addEventListener('open', () => say('live', true));
    stream.addEventListener('paint', (event) => {
      failures = 0;
      say('live', true);
      apply(event.data);
    });
    stream.addEventListener('next', (event) => {
      stop();
      location.replace(event.data);
    });
    stream.addEventListener('end', () => {
      stop();
      say('stopped', false);
    });
    stream.addEventListener('error', async () => {
      failures++;
      say('not live', false);
      if (stream && stream.readyState === EventSource.CLOSED) {
        stop();
        try {
          const told = await fetch(address, { headers: { Accept: 'text/plain' }, signal: AbortSignal.timeout(2000) });
          if (!told.ok) say('not live: ' + (await told.text()).trim(), false);
        } catch { /* the program is away */ }
        setTimeout(start, Math.min(60000, 5000 * failures));
      }
    });
  };
  document.addEventListener('visibilitychange', () => (document.hidden ? stop() : start()));
  window.addEventListener('pagehide', stop);
  window.addEventListener('pageshow', start);

  // The clock of the service goes on between two updates.
  setInterval(() => {
    for (const clock of document.querySelectorAll('[data-clock]')) {
      const began = clock.seen === clock.dataset.clock ? clock.since : (clock.since = Date.now());
      clock.seen = clock.dataset.clock;
      const now = new Date(Date.parse(clock.dataset.clock) + Date.now() - began).toISOString();
      const time = clock.querySelector('time');
      if (time) time.textContent = now.slice(0, 10) + ' ' + now.slice(11, 19);
    }
  }, 1000);

  // Filters act while one types.
  let waiting = 0;
  const filter = async (form) => {
    const query = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (value !== '') query.set(name, value);
    const address = location.pathname + (query.size ? '?' + query : '');
    stop();
    const response = await fetch(address, { headers: { Accept: 'text/html' } });
    const page = new DOMParser().parseFromString(await response.text(), 'text/html');
    const next = page.getElementById('live');
    if (!response.ok || !next) {
      form.submit();
      return;
    }
    history.replaceState(null, '', address);
    morph(live(), next);
    document.body.dataset.live = page.body.dataset.live || '';
    start();
  };
  document.addEventListener('input', (event) => {
    const form = event.target.closest('form.filter');
    if (!form || !live()) return;
    clearTimeout(waiting);
    waiting = setTimeout(() => filter(form).catch(() => form.submit()), 300);
  });

  document.addEventListener('submit', (event) => {
    const ask = event.target.dataset.ask || (event.submitter && event.submitter.dataset.ask);
    if (ask && !confirm(ask)) event.preventDefault();
  });

  document.addEventListener('click', async (event) => {
    const button = event.target.closest('[data-copy]');
    if (!button) return;
    const text = button.parentElement.querySelector('pre, .secret').textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'Select the text and copy it';
    }
  });

  // Keys: / to the filter, j and k through rows, g and a letter to a page, ? for help.
  let going = 0;
  const rows = () => [...document.querySelectorAll('[data-row]')];
  const step = (by) => {
    const all = rows();
    if (!all.length) return;
    const now = all.findIndex((row) => row.classList.contains('at'));
    const next = all[Math.max(0, Math.min(all.length - 1, now < 0 ? 0 : now + by))];
    for (const row of all) row.classList.remove('at');
    next.classList.add('at');
    next.scrollIntoView({ block: 'nearest', behavior: 'instant' }); // a key that is held down outruns a smooth one
    const link = next.querySelector('a');
    if (link) link.focus({ preventScroll: true });
  };
  const help = () => {
    let box = document.getElementById('keys');
    if (!box) {
      box = document.createElement('dialog');
      box.id = 'keys';
      box.setAttribute('aria-label', 'Keys');
      const list = document.createElement('dl');
      list.className = 'kv';
      const line = (key, does) => {
        const dt = document.createElement('dt');
        const kbd = document.createElement('kbd');
        kbd.textContent = key;
        dt.append(kbd);
        const dd = document.createElement('dd');
        dd.textContent = does;
        list.append(dt, dd);
      };
      line('/', 'to the filter');
      line('j, k', 'next and previous row');
      line('Enter', 'open it');
      for (const a of document.querySelectorAll('nav [data-key]')) line('g ' + a.dataset.key, a.textContent);
      line('Esc', 'close this');
      const heading = document.createElement('h2');
      heading.textContent = 'Keys';
      const close = document.createElement('form');
      close.method = 'dialog';
      const button = document.createElement('button');
      button.className = 'quiet';
      button.textContent = 'Close';
      close.append(button);
      box.append(heading, list, close);
      document.body.append(box);
    }
    box.showModal();
  };
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input, textarea, select, dialog')) return;
    if (going && Date.now() - going < 1500) {
      going = 0;
      const link = document.querySelector(`nav [data-key="${CSS.escape(event.key)}"]`);
      if (link) link.click();
      return;
    }
    switch (event.key) {
      case 'g': going = Date.now(); return;
      case 'j': step(1); break;
      case 'k': step(-1); break;
      case '?': help(); break;
      case '/': {
        const field = document.querySelector('form.filter input');
        if (!field) return;
        field.focus();
        field.select();
        break;
      }
      default: return;
    }
    event.preventDefault();
  });

  // The bar stays at the top, and hides no row or link that the keys lead to.
  const bar = document.querySelector('.bar');
  const clear = () => { document.documentElement.style.scrollPaddingTop = `${bar.offsetHeight + 8}px`; };
  if (bar) {
    new ResizeObserver(clear).observe(bar);
    clear();
  }

  decorate(document);
  start();
})();
