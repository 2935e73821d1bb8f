// The page of `rooda web`: keeps the token, fetches the page that the address names, and follows its stream.
(function () {
  'use strict';
  var doc = document, page = doc.getElementById('page'), lost = doc.getElementById('lost');
  var KEY = 'rooda-token', FIRST_WAIT = 500, LONGEST_WAIT = 15000, SILENCE = 25000, LONGEST_LOG = 300000;
  var visit = 0;            // counts the pages that were shown: answers for an earlier one are ignored
  var stop = null;          // ends the current stream
  var follows = true;       // the log shows its end

  // The address that `rooda web` prints has the token after #; it must not stay in the history.
  function takeToken() {
    var hash = location.hash.slice(1);
    if (!hash || hash.charAt(0) === '/' || /^i\d+$|^(timeline|trends|iterations|time|next)$/.test(hash)) return;
    sessionStorage.setItem(KEY, hash);
    history.replaceState(null, '', location.pathname + '#/');
  }

  function ask(path, signal) {
    var token = sessionStorage.getItem(KEY);
    if (!token) return Promise.reject(new Refused());
    return fetch(path, { headers: { Authorization: 'Bearer ' + token }, signal: signal, credentials: 'omit', cache: 'no-store' }).then(function (answer) {
      if (answer.status === 401) throw new Refused();
      return answer;
    });
  }
  function Refused() { this.name = 'Refused'; }

  function place() {
    var words = location.hash.replace(/^#\/?/, '').split('/').filter(Boolean).map(function (word) { return encodeURIComponent(safe(word)); });
    var rest = words.slice(1).join('/');
    if (!words.length) return { page: '/api/runs', live: '/api/live/runs' };
    if (words[0] === 'fleet') return { page: '/api/fleet' };
    if (words[0] === 'report') return { page: '/api/report/' + rest };
    if (words[0] === 'run' && words.length === 4) return { page: '/api/iteration/' + rest };
    return { page: '/api/' + words[0] + '/' + rest, live: words[0] === 'run' ? '/api/live/run/' + rest : null };
  }
  function safe(word) { try { return decodeURIComponent(word); } catch (e) { return word; } }

  function say(words) { lost.textContent = words; lost.hidden = !words; }

  function show(name, words) {
    page.replaceChildren(doc.getElementById(name).content.cloneNode(true));
    var why = page.querySelector('.why');
    if (why) why.textContent = words;
    doc.title = page.querySelector('h1').textContent + ' · rooda';
  }

  function put(html) {
    page.innerHTML = html;
    var main = page.querySelector('main');
    if (main && main.dataset.title) doc.title = main.dataset.title;
    follows = true;
  }

  // One page: fetch it, show it, and follow its stream; again and again if the server is away.
  function open() {
    var mine = ++visit, where = place();
    if (stop) stop();
    var control = new AbortController(), timer = null;
    stop = function () { control.abort(); clearTimeout(timer); };
    var wait = FIRST_WAIT;
    function later(act) {
      say('Connection lost, trying again');
      timer = setTimeout(act, wait * (0.8 + 0.4 * Math.random()));
      wait = Math.min(2 * wait, LONGEST_WAIT);
    }
    function failed(act) {
      return function (error) {
        if (mine !== visit || control.signal.aborted) return;
        if (error instanceof Refused) { say(''); show('no-token'); } else later(act);
      };
    }
    function load() {
      return ask(where.page, control.signal).then(function (answer) {
        return answer.text().then(function (text) {
          if (mine !== visit) return;
          if (answer.status > 500) throw new Error(text);
          say('');
          wait = FIRST_WAIT;
          if (!answer.ok) { show('trouble', text); return; }
          put(text);
          if (where.live) follow();
          else again();
        });
      });
    }
    // A page without a stream whose content goes on is fetched again, unless the user marks text in it.
    function again() {
      var main = page.querySelector('main[data-again]');
      if (main) timer = setTimeout(function () { if (isSelected(main)) again(); else reload(); }, 1000 * main.dataset.again);
    }
    function reload() { var at = scrollY; load().then(function () { scrollTo(0, at); }).catch(failed(reload)); }
    function follow() {
      read(where.live, control.signal, function () { say(''); wait = FIRST_WAIT; }).then(function (status) {
        if (mine !== visit) return;
        if (status === 404) { load().catch(failed(load)); return; }
        later(follow);
      }, failed(follow));
    }
    load().catch(failed(first));
    function first() { load().catch(failed(first)); }
  }

  // Reads the lines of a stream until it ends; a stream without a heartbeat is lost, too.
  function read(path, signal, works) {
    var own = new AbortController(), timer = null;
    signal.addEventListener('abort', function () { own.abort(); });
    function alive() { clearTimeout(timer); timer = setTimeout(function () { own.abort(); }, SILENCE); }
    alive();
    return ask(path, own.signal).then(function (answer) {
      if (!answer.ok) return answer.status;
      var reader = answer.body.getReader(), decoder = new TextDecoder(), rest = '';
      function next() {
        return reader.read().then(function (found) {
          alive();
          if (found.done) return 200;
          var lines = (rest + decoder.decode(found.value, { stream: true })).split('\n');
          rest = lines.pop();
          if (!signal.aborted) { works(); lines.forEach(function (line) { if (line) hear(JSON.parse(line)); }); }
          return next();
        });
      }
      return next();
    }).finally(function () { clearTimeout(timer); });
  }

  function hear(news) {
    if (news.part) change(news.part, news.html);
    else if (news.text !== undefined) write(news.text, news.first);
  }

  // A part with selected text in it is replaced when the selection is gone.
  var waiting = {};
  function isSelected(part) {
    var chosen = getSelection();
    return chosen && !chosen.isCollapsed && part.contains(chosen.anchorNode);
  }
  doc.addEventListener('selectionchange', function () {
    if (!getSelection().isCollapsed) return;
    var now = waiting; waiting = {};
    Object.keys(now).forEach(function (name) { change(name, now[name]); });
  });

  function change(name, html) {
    var old = page.querySelector('[data-part="' + name + '"]');
    var box = doc.createElement('template');
    box.innerHTML = html;
    var fresh = box.content.firstElementChild;
    if (!fresh) return;
    if (!old) { add(fresh); return; }
    if (isSelected(old)) { waiting[name] = html; return; }
    if (old.outerHTML === fresh.outerHTML) return;
    var links = 'a,button,[tabindex]', at = Array.prototype.indexOf.call(old.querySelectorAll(links), doc.activeElement);
    old.replaceWith(fresh);
    var again = at >= 0 && fresh.querySelectorAll(links)[at];
    if (again) again.focus({ preventScroll: true });
    if (name === 'head') { var h1 = fresh.querySelector('h1'), b = page.querySelector('.bar b bdi'); if (h1 && b) doc.title = h1.textContent.trim() + ' · ' + b.textContent + ' · rooda'; }
  }

  // A new iteration: the newest is first.
  function add(row) {
    var list = page.querySelector('[data-list]');
    if (!list || !row.dataset.n) return;
    var before = Array.prototype.find.call(list.children, function (one) { return +one.dataset.n < +row.dataset.n; });
    list.insertBefore(row, before || null);
  }

  // The log follows its end unless the user scrolls up. Text of an agent is only ever text.
  function write(text, isFirst) {
    var log = doc.getElementById('log');
    if (!log) return;
    if (isFirst) log.textContent = '';
    if (text) log.append(text);
    while (log.childNodes.length > 1 && log.textContent.length > LONGEST_LOG) log.firstChild.remove();
    if (follows) log.scrollTop = log.scrollHeight;
  }
  doc.addEventListener('scroll', function (e) {
    var log = e.target;
    if (log.id !== 'log') return;
    follows = log.scrollTop + log.clientHeight >= log.scrollHeight - 8;
    doc.getElementById('follow').hidden = follows;
  }, true);

  function download(link) {
    ask(link.getAttribute('href')).then(function (answer) {
      if (!answer.ok) throw new Error();
      return answer.blob();
    }).then(function (blob) {
      var a = doc.createElement('a');
      a.href = URL.createObjectURL(blob);
      a.download = link.dataset.download;
      a.click();
      setTimeout(function () { URL.revokeObjectURL(a.href); }, 60000);
    }, function () { say('The report could not be loaded.'); });
  }

  doc.addEventListener('click', function (e) {
    var button = e.target.closest('#follow'), link = e.target.closest('a[href]');
    if (button) { var log = doc.getElementById('log'); log.scrollTop = log.scrollHeight; log.focus(); return; }
    if (!link) return;
    var target = link.getAttribute('href');
    if (link.dataset.download) { e.preventDefault(); download(link); }
    else if (target.charAt(0) === '#' && target.charAt(1) !== '/') {
      // A place of this page: the address keeps the name of the page.
      e.preventDefault();
      var there = doc.getElementById(target.slice(1));
      if (there && !window.openTarget(target)) there.scrollIntoView();
    }
  });

  addEventListener('hashchange', function () { takeToken(); scrollTo(0, 0); open(); });
  takeToken();
  open();
})();
