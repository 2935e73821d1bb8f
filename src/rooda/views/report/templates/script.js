// For the report, and for `rooda web`, where parts of the page are replaced: so every handler looks for what is there now.
(function () {
  'use strict';
  var doc = document, $$ = function (s, r) { return Array.prototype.slice.call((r || doc).querySelectorAll(s)); };
  doc.documentElement.classList.add('on');

  // Copy buttons: only the text of rooda's own command.
  function copy(b) {
    var code = b.parentNode.querySelector('code');
    var done = function (ok) {
      var s = b.querySelector('span'); s.textContent = ok ? 'Copied' : 'Select'; doc.getElementById('live').textContent = ok ? 'Command copied' : '';
      setTimeout(function () { s.textContent = 'Copy'; }, 1600);
      if (!ok) { var r = doc.createRange(); r.selectNodeContents(code); var g = getSelection(); g.removeAllRanges(); g.addRange(r); }
    };
    if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(function () { done(true); }, function () { done(false); }); else done(false);
  }

  // The filter of the list, and opening all of it.
  function press(f) { $$('.flt [data-f]').forEach(function (b) { b.setAttribute('aria-pressed', String(b.dataset.f === f)); }); }
  function filter(f) { doc.querySelector('.its').dataset.f = f; press(f); }
  function openAll(x) {
    var open = x.dataset.x === 'open';
    $$('.its>li>details').forEach(function (d) { d.open = open; });
    x.dataset.x = open ? 'close' : 'open'; x.textContent = open ? 'Close all' : 'Open all';
  }
  doc.addEventListener('click', function (e) {
    var b = e.target.closest('.cp,.flt [data-f],[data-x]');
    if (!b) return;
    if (b.dataset.f) filter(b.dataset.f); else if (b.dataset.x) openAll(b); else copy(b);
  });

  // A link to an iteration opens it.
  function openTarget(hash) {
    var m = /^#i(\d+)$/.exec(hash), li = m && doc.getElementById('i' + m[1]), d = li && li.querySelector('details');
    if (!d) return false;
    filter('all');
    d.open = true; li.scrollIntoView(); li.querySelector('summary').focus({ preventScroll: true });
    return true;
  }
  addEventListener('hashchange', function () { openTarget(location.hash); });

  // One iteration is marked in the strip, the three plots and the list together.
  var cur = null;
  function mark(n) {
    if (n === cur) return;
    $$('.hot').forEach(function (e) { e.classList.remove('hot'); });
    cur = n;
    if (n) $$('[data-n="' + n + '"]').forEach(function (e) { e.classList.add('hot'); });
    $$('figure').forEach(function (f) {
      var o = f.querySelector('output'), c = n && f.querySelector('.col[data-n="' + n + '"]');
      if (o.dataset.t === undefined) o.dataset.t = o.textContent;
      o.textContent = c ? c.dataset.r : o.dataset.t;
    });
  }
  function over(e) { var t = e.target.closest && e.target.closest('.tl a,.col'); mark(t ? t.dataset.n : null); }
  doc.addEventListener('pointerover', over); doc.addEventListener('pointerdown', over);

  // On paper: failed iterations are open.
  addEventListener('beforeprint', function () { $$('.its>li.bad>details').forEach(function (d) { d.open = true; }); });
  window.openTarget = openTarget;
  openTarget(location.hash);
})();
